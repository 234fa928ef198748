"""The step publish: the judge's documents appear whole or not at all, and only checked orders leave the pod."""

from pathlib import Path

import msgspec
import pytest

from steps.contracts.cluster_facts import ClusterFacts
from steps.contracts.decision import Decisions, StopOrder
from steps.contracts.declaration import Inputs
from steps.contracts.document import encode
from steps.contracts.errors import BadInput, Exit, SourceUnavailable
from steps.contracts.parcel import MAX_ARGUMENT_BYTES
from steps.contracts.traced import Traced
from steps.decide.judge import orders_of
from steps.publish.declaration import STEP
from steps.publish.step import run
from tests.unit.continuing import continuity
from tests.unit.judging import Sweep, stamp
from tests.unit.outside_double import FakeOutside

FILES = ["cluster.json", "continuity.json", "decisions.json", "facts.json", "orders.json", "traced.json"]


def inputs(folder: Path, orders: bytes | None = None) -> Inputs:
    sweep = Sweep()
    decisions = sweep.judge().decisions
    document = Decisions(stamp=stamp(), run="sweep-2", shard=4, dry_run=False, policy_hash="hash", decisions=decisions)
    cluster = ClusterFacts(stamp=stamp(), nodes=("node-a",), pods=(), sessions=(), waiters=())
    contents = {
        "facts": b"[]",
        "cluster": encode(cluster),
        "traced": encode(Traced(stamp=stamp(), nodes=())),
        "decisions": encode(document),
        "continuity": encode(continuity(shard=4)),
        "orders": msgspec.json.encode(orders_of(decisions, 4)) if orders is None else orders,
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    values = {"run": "sweep-2", "shard": "4", "evidence": str(folder / "evidence")}
    return Inputs(STEP, values | {name: str(folder / name) for name in contents}, {"stops": str(folder / "stops")})


def shard_folder(folder: Path) -> Path:
    return folder / "evidence" / "sweep-2" / "shard-4"


def test_the_documents_of_a_shard_lie_in_one_folder_and_the_orders_go_on(tmp_path: Path) -> None:
    assert run(inputs(tmp_path), FakeOutside()) is Exit.DONE
    assert sorted(path.name for path in shard_folder(tmp_path).iterdir()) == FILES
    assert (tmp_path / "stops").read_bytes() == (tmp_path / "orders").read_bytes()


def test_a_folder_that_may_not_be_looked_at_gets_a_sentence(tmp_path: Path) -> None:
    """Here one that leads to itself; a folder of another user's is the same to the step."""
    (tmp_path / "evidence").symlink_to(tmp_path / "evidence")
    with pytest.raises(SourceUnavailable, match=r"cannot be looked at: .*; give a folder that is readable"):
        run(inputs(tmp_path), FakeOutside())


def test_publishing_again_gives_the_same_folder_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    for _ in range(2):
        run(inputs(tmp_path), FakeOutside())
    assert sorted(path.name for path in shard_folder(tmp_path).iterdir()) == FILES
    assert [path.name for path in shard_folder(tmp_path).parent.iterdir()] == ["shard-4"]


@pytest.mark.parametrize("broken", ["facts", "cluster", "traced", "decisions", "continuity", "orders"])
def test_one_broken_document_and_nothing_is_published(tmp_path: Path, broken: str) -> None:
    asked = inputs(tmp_path)
    (tmp_path / broken).write_bytes(b'{"half":')
    with pytest.raises(BadInput, match=broken):
        run(asked, FakeOutside())
    assert not (tmp_path / "evidence").exists()
    assert not (tmp_path / "stops").exists()


def test_an_order_for_which_no_acting_decision_exists_never_leaves_the_judge(tmp_path: Path) -> None:
    stray = msgspec.json.encode([StopOrder(decision="d-made-up", shard=4, session_uid="uid-a", nodes=("node-a",))])
    with pytest.raises(BadInput, match="d-made-up, for which no acting decision exists"):
        run(inputs(tmp_path, stray), FakeOutside())


def test_more_orders_than_an_argument_holds_are_refused_with_what_to_do(tmp_path: Path) -> None:
    one = StopOrder(decision="d-0123456789abcdef", shard=4, session_uid="u" * 36, nodes=("node-a",))
    many = msgspec.json.encode([one] * (MAX_ARGUMENT_BYTES // len(msgspec.json.encode(one)) + 1))
    with pytest.raises(BadInput, match="lower max_stops_per_sweep"):
        run(inputs(tmp_path, many), FakeOutside())


def test_a_folder_that_cannot_be_made_is_said_in_one_sentence(tmp_path: Path) -> None:
    asked = inputs(tmp_path)
    (tmp_path / "evidence").write_text("a file stands where the folder should be")
    with pytest.raises(SourceUnavailable, match="give an evidence folder that is writable"):
        run(asked, FakeOutside())
