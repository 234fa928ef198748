"""`{{...}}`: which tags a text holds, and the text with their values. A tag without a value is refused, never left in."""

import re
from collections.abc import Mapping
from typing import Final

from steps.contracts.errors import BadInput

_TAG: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def tags_in(text: str) -> list[str]:
    """The tags of a text, without braces. Raises BadInput for an expression tag, which only the controller evaluates."""
    found = [tag.strip() for tag in _TAG.findall(text)]
    for tag in found:
        if tag.startswith("="):
            raise BadInput(f"{{{{{tag}}}}} is an expression, which the local runner does not evaluate; pass the value itself")
    return found


def only_tag(text: str) -> str | None:
    """The tag, if the text is that tag and nothing more."""
    match = _TAG.fullmatch(text)
    return match.group(1).strip() if match and len(tags_in(text)) == 1 else None


def fill(text: str, values: Mapping[str, str], where: str) -> str:
    """The text with every tag replaced. Raises BadInput for a tag without a value."""
    for tag in tags_in(text):
        if tag not in values:
            raise BadInput(
                f"{where}: {{{{{tag}}}}} has no value; name an input, an output of a task before, or a workflow parameter"
            )
    return _TAG.sub(lambda match: values[match.group(1).strip()], text)


def plain(value: str, where: str) -> str:
    """The value, if it holds no tag of its own. Raises BadInput: the controller would evaluate it (facts 3.12)."""
    if "{{" in value:
        raise BadInput(f"{where} holds '{{{{', which the controller would evaluate; values must be plain text")
    return value
