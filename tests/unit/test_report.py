"""The report: what a person sees, that unknown is shown as unknown, and that foreign text stays text."""

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from steps.archive.evidence import load_evidence
from steps.archive.shown import as_sentence, plain
from steps.archive.view import View, view_of
from steps.contracts.decision import Verdict
from steps.contracts.document import Sample, encode
from steps.contracts.release import ReleaseVerdict
from steps.contracts.traced import GpuClass, Traced
from tests.unit.archiving import Archived, device, judged, receipt, release, running
from tests.unit.continuing import continuity
from tests.unit.judging import Sweep, gpu, holder, node, stamp, waiter

EVIL = "<script>alert(1)</script>\"'&\u202egnp.exe\x1b[31m"


class Page(HTMLParser):
    """The text a reader sees, and every tag and attribute."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self._text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend(attrs)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self._text.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._text).split())


@pytest.fixture
def archived(tmp_path: Path) -> Archived:
    judged(tmp_path, waiting=[waiter("b-1")])
    return Archived(tmp_path)


def view(archived: Archived) -> View:
    archived.archive()
    return view_of(load_evidence(archived.evidence))


def test_the_first_sentence_says_what_happened(archived: Archived) -> None:
    assert view(archived).lead == "1 of 1 session was stopped, and 1 GPU came back, proven on the node."
    assert view(archived).lead in Page(archived.report()).text


def test_a_run_that_stopped_nothing_says_what_it_would_have_stopped(tmp_path: Path) -> None:
    judged(tmp_path, decisions=Sweep(dry_run=True).judge().decisions)
    archived = Archived(tmp_path)
    archived.outside.run_reader.record = running(without=("capture", "stop", "verify"))
    assert view(archived).lead == "Nothing was stopped; 1 of 1 session would have been."


def test_a_gpu_given_back_shows_before_after_the_interval_and_the_taker(archived: Archived) -> None:
    text = Page(archived.report()).text
    assert "2.0 GiB → 4 MiB" in text
    assert "last seen held 2026-11-30 12:00:32 UTC; first seen free 2026-11-30 12:00:33 UTC" in text
    assert "pod team/b-1 has it, running 5 s after the stop" in text


def test_a_leak_is_told_first_with_holders_and_remedy(archived: Archived) -> None:
    archived.outside.run_reader.record = running(released=release(device(ReleaseVerdict.LEAKED)))
    text = Page(archived.report()).text
    assert "1 GPU did not, or it is not known" in text
    assert "SIGTERM, then SIGKILL, to exactly this process" in text
    assert "not seen free" in text
    assert "PID STATE GPU_MEM NSMI QOS POD NAMESPACE CONTAINER" in text


def test_unknown_readings_are_shown_as_unknown_with_their_reason(archived: Archived) -> None:
    silent = gpu(
        headline=GpuClass.GPU_LOST,
        utilisation=Sample.error("GpuIsLost"),
        sm=Sample.absent("no GPM"),
        allocated=Sample.absent("the kubelet's checkpoint is missing"),
    )
    silent = msgspec.structs.replace(
        silent, used_bytes=Sample.error("GpuIsLost"), unexplained_bytes=Sample.absent("used is unknown")
    )
    traced = Traced(stamp=stamp(), nodes=(node(silent), node(name="node-b", problem="it did not answer within 60 s")))
    (archived.evidence / "shard-0" / "traced.json").write_bytes(encode(traced))
    window = msgspec.structs.replace(continuity().nodes[0], unexplained_bytes=Sample.absent("used is unknown"))
    (archived.evidence / "shard-0" / "continuity.json").write_bytes(encode(continuity(nodes=(window,))))
    text = Page(archived.report()).text
    assert "used unknown: error: GpuIsLost" in text
    assert "unexplained unknown: absent: used is unknown" in text
    assert "given to unknown: absent: the kubelet's checkpoint is missing" in text
    assert "unknown: it did not answer within 60 s" in text
    assert re.search(r"\b0 B\b", text) is None


def test_a_release_whose_memory_could_not_be_read_shows_no_number(archived: Archived) -> None:
    unread = device(ReleaseVerdict.UNKNOWN, used_after_bytes=Sample.error("NVML timed out"), first_seen_free=None)
    archived.outside.run_reader.record = running(released=release(unread))
    assert "2.0 GiB → unknown: error: NVML timed out" in Page(archived.report()).text


def test_every_gap_is_on_the_page(archived: Archived) -> None:
    archived.outside.run_reader.logs = {}
    page = Page(archived.report())
    for line in archived.summary().missing:
        assert line in page.text


def test_foreign_text_stays_text(archived: Archived) -> None:
    evil_gpu = gpu(holders=[holder(name=EVIL)])
    traced = Traced(stamp=stamp(), nodes=(node(evil_gpu, problem=EVIL),))
    (archived.evidence / "shard-0" / "traced.json").write_bytes(encode(traced))
    refused = msgspec.structs.replace(receipt(acted=False), sentence=f"the API server said: {EVIL}")
    archived.outside.run_reader.record = running(without=("verify",), stopped=refused)
    html = archived.report()
    page = Page(html)
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in page.text
    assert "\u202e" not in html
    assert "\x1b" not in html
    assert "\\u202egnp.exe\\u001b[31m" in page.text


def test_the_report_fetches_nothing_and_runs_nothing(archived: Archived) -> None:
    html = archived.report()
    page = Page(html)
    assert not {"script", "link", "img", "iframe", "object", "form"} & set(page.tags)
    assert not {name for name, _ in page.attributes} & {"src", "href", "onclick", "onload"}
    assert "url(" not in html
    assert "@import" not in html
    assert "default-src 'none'" in html


def test_the_page_is_well_formed(archived: Archived) -> None:
    page = Page(archived.report())
    assert page.open == []
    assert page.tags.count("h1") == 1


def test_simulated_facts_carry_a_banner(archived: Archived) -> None:
    assert "These facts come from a simulator, not from real GPUs." in Page(archived.report()).text


def test_every_verdict_has_its_sentence_and_what_would_change_it(archived: Archived) -> None:
    (row,) = view(archived).sessions
    assert row.verdict.text == Verdict.RECLAIM.value
    text = Page(archived.report()).text
    assert row.sentence in text
    assert row.would_change in text


def test_the_queue_shows_the_schedulers_words(archived: Archived) -> None:
    assert "0/1 nodes are available: 1 Insufficient nvidia.com/gpu." in Page(archived.report()).text


def test_the_report_names_run_policy_and_checksums(archived: Archived) -> None:
    text = Page(archived.report()).text
    for words in ("sweep-2", "dry-run=false", "policy hash", "shard-0/decisions.json"):
        assert words in text


@pytest.mark.parametrize(
    ("clause", "sentence"), [("it idled", "It idled."), ("It idled.", "It idled."), ("GPU 0 is lost", "GPU 0 is lost.")]
)
def test_a_clause_becomes_a_sentence(clause: str, sentence: str) -> None:
    assert as_sentence(clause) == sentence


def test_control_and_direction_marks_become_visible_and_line_breaks_stay() -> None:
    assert plain("a\x00b\u200fc\nd") == "a\\u0000b\\u200fc\nd"
