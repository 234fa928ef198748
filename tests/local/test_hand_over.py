"""What a fan-out hands over, in the form that the controller gives it, is what the next step reads."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from steps.contracts.declaration import In, Inputs, Out, Step
from steps.contracts.document import Document, Origin, Sample, Stamp, decode
from steps.contracts.errors import BadInput
from steps.contracts.parcel import pack, unpack_all
from steps.contracts.run_record import EvidenceSummary
from workflows.local.fanout import aggregate, aggregate_all


class Note(Document, frozen=True, kw_only=True):
    text: str


NOTES = (Note(text="<a> & b"), Note(text="ü {{=1+41}}"))


def texts(notes: tuple[Note, ...]) -> list[str]:
    return [pack(note).decode() for note in notes]


def test_the_list_of_one_output_is_read() -> None:
    assert unpack_all(aggregate(texts(NOTES)), Note, "facts") == NOTES


def test_the_list_of_all_outputs_is_read() -> None:
    assert unpack_all(aggregate_all([{"facts": text} for text in texts(NOTES)]), Note, "facts") == NOTES


@pytest.mark.parametrize("nothing", ["", "[]", aggregate_all([]), aggregate_all([{}])])
def test_no_answer_at_all_is_no_document(nothing: str) -> None:
    assert unpack_all(nothing, Note, "facts") == ()


@pytest.mark.parametrize("broken", ['[{"facts": "no parcel"}]', '[{"a": "1", "b": "2"}]', "[1]", '{"facts": "x"}'])
def test_what_is_no_parcel_is_refused_with_its_place(broken: str) -> None:
    with pytest.raises(BadInput, match="facts"):
        unpack_all(broken, Note, "facts")


def test_no_document_of_a_step_can_hold_a_tag_for_the_controller(tmp_path: Path) -> None:
    step = Step(name="s", help="", inputs=(In("node", "a node"),), outputs=(Out("summary", "a summary"),))
    summary = EvidenceSummary(
        stamp=Stamp(made_by="x", made_at=datetime(2026, 11, 30, tzinfo=UTC), origin=Origin.SIMULATED),
        run="r",
        phase="Succeeded",
        sessions_judged=0,
        verdicts={},
        stops_acted=0,
        stops_refused=0,
        releases={},
        hand_overs=(),
        missing=("annotation says {{=1+41}}", "and {{{{"),
        report=Sample.absent("none"),
    )
    Inputs(step, {"node": "a"}, {"summary": str(tmp_path / "s.json")}).put("summary", summary)
    written = (tmp_path / "s.json").read_bytes()
    assert b"{{" not in written
    assert decode(written, EvidenceSummary, "s.json") == summary
