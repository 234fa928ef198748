"""Expected beside measured over all repetitions: the most frequent word, n of N, and whether it was expected. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from experiments.zombie.report.explain import why
from experiments.zombie.results import Judgement, Measured, RepetitionResult, Verdict, Word
from experiments.zombie.scenarios import Row, Scenario

MEANS: Final[dict[Row, dict[str, tuple[Word, ...]]]] = {
    Row.REAPED: {"yes": (Word.YES,), "no": (Word.NO,)},
    Row.ORPHAN: {"stays": (Word.STAYS,), "until the SIGKILL fallback": (Word.BY_HOOK,), "leaves by itself": (Word.LEFT,)},
    Row.CLEAN_UP: {"yes": (Word.YES,), "no": (Word.NO,)},
    Row.KILLED_CONTEXT: {"yes": (Word.YES,)},
    Row.AFTER_DELETION: {"free": (Word.FREE,)},
    Row.REBOOT: {"not needed": (Word.NOT_NEEDED,)},
}
"""What each expectation commits itself to. One that is not here ("may stay", "uncertain", "possible", "n/a") left it open."""


def verdicts(scenario: Scenario, repetitions: Sequence[RepetitionResult]) -> tuple[Verdict, ...]:
    """One for each row, in order."""
    return tuple(_verdict(scenario, row, [one for rep in repetitions for one in rep.measured if one.row is row]) for row in Row)


def _verdict(scenario: Scenario, row: Row, measured: Sequence[Measured]) -> Verdict:
    expected = scenario.expected[row]
    known = [one for one in measured if one.word is not Word.UNKNOWN]
    if not known:
        reason = measured[0].sentence if measured else "no repetition got that far"
        return Verdict(
            row=row,
            expected=expected,
            measured=Word.UNKNOWN,
            n=0,
            of=len(measured),
            judgement=Judgement.UNKNOWN,
            sentence=reason,
            why="",
        )
    word, n = Counter(one.word for one in known).most_common(1)[0]
    said = next(one.sentence for one in known if one.word is word)
    judgement = _judgement(row, expected, word, stable=n == len(known))
    return Verdict(
        row=row,
        expected=expected,
        measured=word,
        n=n,
        of=len(measured),
        judgement=judgement,
        sentence=said,
        why=why(scenario, row, word, said),
    )


def _judgement(row: Row, expected: str, word: Word, *, stable: bool) -> Judgement:
    if not stable:
        return Judgement.MIXED
    meant = MEANS[row].get(expected)
    if meant is None:
        return Judgement.OPEN
    return Judgement.AS_EXPECTED if word in meant else Judgement.OTHERWISE
