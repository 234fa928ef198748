"""Label and field selectors, as far as a list call needs them. What is not understood is a 400, never an empty answer."""

import re
from typing import Final

from sim.world.state import Json

FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "metadata.name": ("metadata", "name"),
    "metadata.namespace": ("metadata", "namespace"),
    "spec.nodeName": ("spec", "nodeName"),
    "status.phase": ("status", "phase"),
    "involvedObject.uid": ("involvedObject", "uid"),
    "involvedObject.name": ("involvedObject", "name"),
    "regarding.uid": ("regarding", "uid"),
    "regarding.name": ("regarding", "name"),
    "reason": ("reason",),
}
SET: Final = re.compile(r"^(?P<key>[^\s!=(),]+)\s+(?P<word>in|notin)\s+\((?P<values>[^()]*)\)$")


class BadSelector(ValueError):
    """A selector that the server would refuse; the text says why."""


def fields_match(item: Json, selector: str) -> bool:
    """Comparisons `key=value`, `key==value`, `key!=value`, joined by commas. An absent field compares as empty."""
    for term in filter(None, selector.split(",")):
        found = re.match(r"^([^=!]+)(==|=|!=)(.*)$", term.strip())
        if found is None or found[1] not in FIELDS:
            raise BadSelector(f"field label not supported: {term}")
        here: object = item
        for key in FIELDS[found[1]]:
            here = here.get(key, "") if isinstance(here, dict) else ""
        if (str(here) == found[3]) == (found[2] == "!="):
            return False
    return True


def labels_match(item: Json, selector: str) -> bool:
    """Terms `a=b`, `a!=b`, `a`, `!a`, `a in (b,c)`, `a notin (b)`, joined by commas outside of brackets."""
    labels: dict[str, str] = item["metadata"].get("labels", {})
    return all(_term_holds(labels, term.strip()) for term in re.split(r",(?![^(]*\))", selector) if term.strip())


def _term_holds(labels: dict[str, str], term: str) -> bool:
    if chosen := SET.match(term):
        inside = labels.get(chosen["key"]) in [value.strip() for value in chosen["values"].split(",")]
        return inside == (chosen["word"] == "in")
    if compared := re.match(r"^([^\s=!]+)\s*(==|=|!=)\s*(\S*)$", term):
        return (labels.get(compared[1]) == compared[3]) == (compared[2] != "!=")
    if re.match(r"^!?[-A-Za-z0-9._/]+$", term) is None:
        raise BadSelector(f"unable to parse requirement: {term}")
    return (term[1:] not in labels) if term.startswith("!") else (term in labels)
