"""The experiment's view becomes one HTML file, by the same rules as the sweep's report."""

from collections.abc import Sequence

from experiments.zombie.report.view import View
from steps.archive.report import page


def render(view: View, files: Sequence[tuple[str, str]]) -> str:
    """The report. files: (path in the folder, SHA-256). Equal views give equal text."""
    return page("experiments.zombie.report", view, files)
