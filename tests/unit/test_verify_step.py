"""The step `verify`, over the real look: files in, Release out, and the exit code that says whether the memory is back."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steps.contracts.declaration import Inputs
from steps.contracts.document import Origin, Sample, encode
from steps.contracts.errors import BadInput, Exit
from steps.contracts.node_facts import Allocation, GpuFacts, NodeFacts, PodOnDisk, Scan
from steps.contracts.parcel import pack, unpack
from steps.contracts.ports import DeviceNode, GpuReading, ProcessScan, Walk
from steps.contracts.release import Release, ReleaseVerdict
from steps.contracts.stop_receipt import StopReceipt
from steps.verify.declaration import STEP
from steps.verify.step import run
from tests.unit.release_world import FakeClock, Node, free, ghost, held, receipt, taken, until
from tests.unit.trace_world import GPU_A, NODE, NOON, blind

FOREVER = float("inf")


@dataclass
class Outside:
    """A node whose readers answer what `node` shows at the clock's time."""

    node: Node
    clock: FakeClock = field(default_factory=FakeClock)
    origin: Origin = Origin.SIMULATED
    environment: Mapping[str, str] = field(default_factory=dict)
    scans: list[Scan] = field(default_factory=list)

    def now(self) -> NodeFacts:
        return self.node((self.clock.now() - NOON).total_seconds())

    def gpus(self) -> "Gpus":
        return Gpus(self)

    def processes(self) -> "Processes":
        return Processes(self)

    def allocations(self) -> "Allocations":
        return Allocations(self)

    def pods_on_disk(self) -> "Folders":
        return Folders(self)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"verify does not need {name}: its account may do nothing in the API")


@dataclass
class Gpus:
    outside: Outside

    def begin(self) -> Callable[[], GpuReading]:
        seen = self.outside.now()
        return lambda: GpuReading(driver=seen.driver, gpus=seen.gpus, pci_gpu_count=seen.pci_gpu_count)


@dataclass
class Processes:
    outside: Outside

    def devices(self, gpus: Sequence[GpuFacts]) -> Sample[tuple[DeviceNode, ...]]:
        return Sample.measured((DeviceNode(name="nvidia0", major=195, minor=0, gpu_uuid=GPU_A),))

    def walk(self) -> Walk:
        return Walk(frozenset(), (), {}, (), {})

    def scan(self, devices: Sequence[DeviceNode], also: Sequence[int], scan: Scan, walk: Walk | None = None) -> ProcessScan:
        self.outside.scans.append(scan)
        seen = self.outside.now()
        return ProcessScan(boot_id=seen.boot_id, visibility=seen.visibility, processes=seen.processes, sockets=seen.sockets)


@dataclass
class Allocations:
    outside: Outside

    def read(self) -> Sample[tuple[Allocation, ...]]:
        return self.outside.now().allocations


@dataclass
class Folders:
    outside: Outside

    def read(self, uids: Collection[str], containers: Collection[str], pids: Collection[int]) -> Sample[tuple[PodOnDisk, ...]]:
        return self.outside.now().pods_on_disk


def verified(
    folder: Path, node: Node, *, stop: StopReceipt | None = None, captures: Sequence[NodeFacts] | None = None, interval: str = "1"
) -> tuple[Exit, Release, Outside]:
    (folder / "receipt.json").write_bytes(encode(stop or receipt()))
    parcels = b",".join(pack(one) for one in ([held()] if captures is None else captures))
    (folder / "captures.json").write_bytes(b"[" + parcels + b"]")
    given = {"node": NODE, "receipt": str(folder / "receipt.json"), "captures": str(folder / "captures.json")}
    outside, target = Outside(node), folder / "release.json"
    done = run(Inputs(STEP, {**given, "interval-s": interval}, {"release": str(target)}), outside)
    return done, unpack(target.read_bytes(), Release, str(target)), outside


@pytest.mark.parametrize(
    ("node", "verdict", "done"),
    [
        (until((3, held), (FOREVER, free)), ReleaseVerdict.RETURNED, Exit.DONE),
        (until((3, held), (FOREVER, taken)), ReleaseVerdict.TAKEN_OVER, Exit.DONE),
        (held, ReleaseVerdict.LEAKED, Exit.MEMORY_NOT_BACK),
        (ghost, ReleaseVerdict.LEAKED, Exit.MEMORY_NOT_BACK),
        (lambda at_s: free(at_s, visibility=blind()), ReleaseVerdict.UNKNOWN, Exit.COULD_NOT),
    ],
    ids=["returned", "taken over", "held", "ghost", "blind"],
)
def test_the_release_is_written_whatever_it_says_and_the_exit_code_fits(
    tmp_path: Path, node: Node, verdict: ReleaseVerdict, done: Exit
) -> None:
    exited, release, outside = verified(tmp_path, node)
    assert (release.verdict, exited) == (verdict, done)
    assert (release.node, release.decision_id, release.stamp.made_by) == (NODE, "d-1", "verify")
    assert set(outside.scans) == {Scan.FULL}


def test_the_newest_capture_of_this_node_is_taken_and_others_are_left(tmp_path: Path) -> None:
    elsewhere = msgspec.structs.replace(held(-1), node="node-b")
    _, release, _ = verified(tmp_path, free, captures=[held(-50), held(-5), elsewhere])
    assert "no capture" not in release.sentence
    (device,) = release.devices
    assert device.last_seen_held is not None
    assert (NOON - device.last_seen_held).total_seconds() == 5


@pytest.mark.parametrize("captures", [[], [msgspec.structs.replace(held(), node="node-b")]], ids=["none", "of another node"])
def test_a_missing_capture_makes_the_proof_weaker_and_the_release_says_so(tmp_path: Path, captures: list[NodeFacts]) -> None:
    done, release, _ = verified(tmp_path, free, captures=captures)
    assert (done, release.verdict) == (Exit.DONE, ReleaseVerdict.RETURNED)
    assert "no capture of this node" in release.sentence


def test_a_capture_by_a_quick_scan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="quick scan"):
        verified(tmp_path, free, captures=[held(-50), msgspec.structs.replace(held(-5), scan=Scan.QUICK)])


def test_a_receipt_that_did_not_act_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nothing to verify"):
        verified(tmp_path, free, stop=receipt(acted=False))


def test_an_interval_that_would_spin_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--interval-s got '0'; give seconds"):
        verified(tmp_path, free, interval="0")
