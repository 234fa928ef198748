"""A view becomes one HTML file: self-contained, no script, nothing fetched, every foreign text escaped."""

from collections.abc import Sequence
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from steps import __version__
from steps.archive.shown import plain
from steps.archive.view import View

TEMPLATE: Final = "report.html"


def render(view: View, files: Sequence[tuple[str, str]]) -> str:
    """The report. files: (path in the folder, SHA-256). Equal views give equal text."""
    return page("steps.archive", view, files)


def page(package: str, view: object, files: Sequence[tuple[str, str]]) -> str:
    """The package's `report.html` filled with the view; what the view does not know is an error, never blank."""
    environment = Environment(
        loader=PackageLoader(package, "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=plain,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(TEMPLATE).render(view=view, files=files, version=__version__)
