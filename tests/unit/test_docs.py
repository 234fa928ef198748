"""The pages lead somewhere: links, paths, commands, targets and references to facts are those that exist."""

import re
from pathlib import Path

import pytest

from steps.cli import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
OWN_PAGES = [page for page in PAGES if page.parent.name != "facts"]
CODE = sorted(
    path
    for folder in ("steps", "experiments", "workflows", "sensors", "sim", "tests", "deploy", "images")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".yaml", ".c", ".h", ".html", ".sh"} and "schemas" not in path.parts
)
LINK = re.compile(r"\]\(([^)#\s]+)")
OWN_PATH = re.compile(r"(?<![\w./{$~-])((?:docs|steps|workflows|sim|deploy|images|tests|experiments|sensors)/[\w./-]*\w)")
FACTS = re.compile(r"facts/([a-z-]+)(?:\.md)?,?(?: section)?((?: \d+(?:\.\d+)?(?:,| to| and)?)*)")
INVENTED = {"deploy/mine", "workflows/manifest", "images/tag"}
"""Names that a page makes up as an example."""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_to_something(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", OWN_PAGES, ids=name)
def test_every_path_of_the_checkout_that_a_page_names_is_there(page: Path) -> None:
    named = set(OWN_PATH.findall(page.read_text(encoding="utf-8"))) - INVENTED
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *(ROOT / "docs").glob("*.md")], ids=name)
def test_every_target_that_a_page_names_is_one_of_the_makefile(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert named - targets == set()


def test_every_command_stands_in_the_docs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    commands = re.findall(r"^    ([a-z]+)\b", capsys.readouterr().out, re.MULTILINE)
    pages = "\n".join(page.read_text(encoding="utf-8") for page in OWN_PAGES)
    assert "restore" in commands
    assert [command for command in commands if f"gpu-reclaim {command}" not in pages] == []


def test_every_page_is_reachable_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = [page for page in (ROOT / "docs").glob("*.md") if name(page) not in readme]
    assert pages == []


def test_every_page_that_the_code_names_is_there() -> None:
    named = {(name(path), page) for path in CODE for page in re.findall(r"docs/[\w./-]*\w", path.read_text(encoding="utf-8"))}
    assert sorted(one for one in named if not (ROOT / one[1]).exists()) == []


def test_every_reference_to_the_facts_has_its_section() -> None:
    dangling = [
        (name(path), page, section)
        for path in CODE
        for page, sections in FACTS.findall(path.read_text(encoding="utf-8"))
        for section in re.findall(r"\d+(?:\.\d+)?", sections) or [""]
        if not _stands(page, section)
    ]
    assert dangling == []


def _stands(page: str, section: str) -> bool:
    """A heading `## 4.` or `### 4.7`, or the seventh item of section 4."""
    path = ROOT / "docs" / "facts" / f"{page}.md"
    if not path.exists():
        return False
    text = path.read_text(encoding="utf-8")
    if not section or re.search(rf"^#+ {re.escape(section)}\b", text, re.MULTILINE):
        return True
    chapter, _, item = section.partition(".")
    body = re.search(rf"^## {chapter}\.(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return body is not None and re.search(rf"^{item}\. ", body[1], re.MULTILINE) is not None
