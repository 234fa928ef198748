"""Expected beside measured: n of N, whether it was expected, and a reason wherever it was not."""

import pytest

from experiments.zombie.report.verdicts import verdicts
from experiments.zombie.results import Judgement, Measured, RepetitionResult, Verdict, Word
from experiments.zombie.scenarios import SCENARIOS, Row, ScenarioId


def repetition(number: int, **words: Word) -> RepetitionResult:
    """words: by the name of the row; all others are unknown."""
    measured = tuple(Measured(row=row, word=words.get(row.name, Word.UNKNOWN), sentence="seen") for row in Row)
    return RepetitionResult(
        number=number,
        pod_uid=None,
        image_id=None,
        measured=measured,
        timed=(),
        held_bytes=None,
        recreated=(),
        remedies=(),
        failure=None,
    )


def verdict(scenario: ScenarioId, row: Row, *words: Word) -> Verdict:
    repetitions = [repetition(number, **{row.name: word}) for number, word in enumerate(words, start=1)]
    return next(one for one in verdicts(SCENARIOS[scenario], repetitions) if one.row is row)


@pytest.mark.parametrize(
    ("scenario", "row", "word", "judgement"),
    [
        (ScenarioId.S1_EXECS, Row.REAPED, Word.NO, Judgement.AS_EXPECTED),
        (ScenarioId.S1_STAYS, Row.REAPED, Word.YES, Judgement.OTHERWISE),
        (ScenarioId.S2, Row.ORPHAN, Word.WITH_PID1, Judgement.OTHERWISE),
        (ScenarioId.S3, Row.ORPHAN, Word.BY_HOOK, Judgement.AS_EXPECTED),
        (ScenarioId.S4, Row.ORPHAN, Word.LEFT, Judgement.AS_EXPECTED),
        (ScenarioId.S3, Row.KILLED_CONTEXT, Word.NO, Judgement.OPEN),
        (ScenarioId.S4, Row.KILLED_CONTEXT, Word.NO, Judgement.OPEN),
        (ScenarioId.S2, Row.AFTER_DELETION, Word.FREE, Judgement.OPEN),
        (ScenarioId.S4, Row.AFTER_DELETION, Word.FREE, Judgement.AS_EXPECTED),
        (ScenarioId.S4, Row.AFTER_DELETION, Word.STAYS, Judgement.OTHERWISE),
    ],
)
def test_a_measurement_is_judged_by_what_the_expectation_committed_itself_to(
    scenario: ScenarioId, row: Row, word: Word, judgement: Judgement
) -> None:
    assert verdict(scenario, row, word).judgement is judgement


def test_n_of_n_counts_the_most_frequent_word_and_disagreement_is_said() -> None:
    said = verdict(ScenarioId.S2, Row.REAPED, Word.YES, Word.NO, Word.YES)
    assert (said.measured, said.n, said.of, said.judgement) == (Word.YES, 2, 3, Judgement.MIXED)


def test_a_repetition_without_an_answer_lowers_n_and_is_no_disagreement() -> None:
    said = verdict(ScenarioId.S2, Row.REAPED, Word.YES, Word.UNKNOWN, Word.YES)
    assert (said.n, said.of, said.judgement) == (2, 3, Judgement.AS_EXPECTED)


def test_nothing_measured_is_not_measured_and_not_as_expected() -> None:
    assert verdict(ScenarioId.S2, Row.REAPED).judgement is Judgement.UNKNOWN
    assert verdict(ScenarioId.S2, Row.REAPED, Word.UNKNOWN).judgement is Judgement.UNKNOWN


@pytest.mark.parametrize("scenario", list(ScenarioId))
@pytest.mark.parametrize("row", list(Row))
def test_whatever_differs_has_a_reason(scenario: ScenarioId, row: Row) -> None:
    possible = {
        Row.REAPED: (Word.YES, Word.NO),
        Row.ORPHAN: (Word.STAYS, Word.LEFT, Word.BY_HOOK, Word.WITH_PID1, Word.AT_GRACE),
        Row.CLEAN_UP: (Word.YES, Word.NO),
        Row.KILLED_CONTEXT: (Word.YES, Word.NO),
        Row.AFTER_DELETION: (Word.FREE, Word.STAYS),
        Row.REBOOT: (Word.NOT_NEEDED, Word.PROPOSED),
    }[row]
    assert [word for word in possible if not verdict(scenario, row, word).why] == []


def test_the_seeds_table_stands_as_it_was_written() -> None:
    table = {scenario.number: [scenario.expected[row] for row in Row] for scenario in SCENARIOS.values()}
    assert table == {
        1: ["no", "stays", "no", "yes", "may stay", "possible"],
        2: ["yes", "stays", "no", "yes", "uncertain", "possible"],
        3: ["yes", "until the SIGKILL fallback", "no", "possible", "uncertain", "possible"],
        4: ["yes", "leaves by itself", "yes", "n/a", "free", "not needed"],
    }
