"""A view becomes one HTML file: self-contained, no script, nothing fetched, every foreign text escaped."""

from collections.abc import Sequence
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from experiments.zombie.report.view import View
from steps import __version__
from steps.archive.shown import plain

TEMPLATE: Final = "report.html"


def render(view: View, files: Sequence[tuple[str, str]]) -> str:
    """The report. files: (path in the folder, SHA-256). Equal views give equal text."""
    environment = Environment(
        loader=PackageLoader("experiments.zombie.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=plain,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(TEMPLATE).render(view=view, files=files, version=__version__)
