"""A policy file becomes a Policy, or one sentence that says where it is wrong and what to write instead.

Strict on purpose: a duplicate key or a misspelt field that is ignored is a limit somebody believes in and nobody applies.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import yaml

from steps.contracts.errors import BadInput
from steps.contracts.policy import OptOut, Policy

MAX_POLICY_BYTES: Final = 64 * 1024
"""Limit for whoever reads the file."""

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "": tuple(field.name for field in msgspec.structs.fields(Policy)),
    "opt_out": tuple(field.name for field in msgspec.structs.fields(OptOut)),
}

_SECONDS: Final = "give seconds, a whole number from 0 to 2678400, for example 1800"
_GIVE: Final[Mapping[str, str]] = {
    "mode": "give observe or act",
    "namespaces": "give a list of namespace names, for example [team-a, team-b]; put names such as no, on or 1 in quotes",
    "idle_after_s": _SECONDS,
    "minimum_age_s": _SECONDS,
    "max_stops_per_sweep": "give a whole number from 0 to 1000, for example 1",
    "opt_out": "give a mapping, for example {annotation: gpu-reclaim.dev/exclude}",
    "opt_out.annotation": "give the name of an annotation, for example gpu-reclaim.dev/exclude",
}


def parse_policy(data: bytes, where: str) -> Policy:
    """The policy in a YAML text. where: the file's name, for the sentence.

    Raises BadInput: not YAML, a duplicate key, an unknown field (the allowed ones are named), a value out of range.
    """
    root = _compose(data, where)
    lines = _check_keys(root, where)
    _check_numbers(root, where)
    try:
        return msgspec.convert(_Constructor().construct_document(root), Policy)
    except msgspec.ValidationError as error:
        raise BadInput(_sentence(error, root, lines, where)) from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2026-99-99
        raise BadInput(f"{where} is not a policy: {_one_line(error)}; mend it there") from error


def policy_hash(policy: Policy) -> str:
    """32 hex digits of what the policy says; comments, order and defaults written out make no difference."""
    return hashlib.sha256(msgspec.json.encode(policy, order="deterministic")).hexdigest()[:32]


class _Constructor(yaml.constructor.SafeConstructor):
    """Builds plain values only: no tag of the text can name a Python object."""


def _compose(data: bytes, where: str) -> yaml.MappingNode:
    try:
        root: object = yaml.compose(data, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{where} is not YAML: {_one_line(error)}; mend it there") from error
    if not isinstance(root, yaml.MappingNode):
        raise BadInput(f"{where} holds no policy; write at least `mode: observe` and `namespaces: []`")
    return root


def _check_keys(root: yaml.MappingNode, where: str) -> Mapping[str, int]:
    """The line of each field, by its path. Raises BadInput at the first unknown or repeated one."""
    lines: dict[str, int] = {}
    for inside, key in _keys(root):
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise BadInput(f"{where} line {line}: a field's name must be a plain word; mend it there")
        path = f"{inside}.{key.value}" if inside else str(key.value)
        if key.value not in _FIELDS[inside]:
            of = f" of {inside}" if inside else ""
            raise BadInput(f"{where} line {line}: unknown field {key.value!r}{of}; allowed: {', '.join(_FIELDS[inside])}")
        if path in lines:
            raise BadInput(f"{where} line {line}: {path} stands there a second time, first in line {lines[path]}; keep one")
        lines[path] = line
    return lines


def _check_numbers(root: yaml.MappingNode, where: str) -> None:
    """Raises BadInput for a number that YAML reads otherwise than a person does: 1:30 is 90 to it, and 010 is 8."""
    for key, value in root.value:
        plain = isinstance(value, yaml.ScalarNode) and value.tag == "tag:yaml.org,2002:int"
        if plain and re.fullmatch(r"-?(0|[1-9][0-9]{0,18})", value.value) is None:
            line = value.start_mark.line + 1
            raise BadInput(f"{where} line {line}: {key.value} is {_as_written(root, key.value)}; {_GIVE[key.value]}")


def _keys(root: yaml.MappingNode) -> Iterator[tuple[str, yaml.Node]]:
    """(the field it is inside of, key) of every mapping that a policy may hold."""
    for key, value in root.value:
        yield "", key
        if key.value == "opt_out" and isinstance(value, yaml.MappingNode):
            yield from (("opt_out", inner) for inner, _ in value.value)


def _sentence(error: msgspec.ValidationError, root: yaml.MappingNode, lines: Mapping[str, int], where: str) -> str:
    missing = re.search(r"missing required field `(\w+)`", str(error))
    if missing:
        return f"{where} says nothing about {missing[1]}; {_GIVE[missing[1]]}"
    at = re.search(r"`\$\.([\w.]+)", str(error))
    path = at[1] if at else ""
    if path not in _GIVE:
        return f"{where} is not a policy: {error}; mend it there"
    return f"{where} line {lines[path]}: {path} is {_as_written(root, path)}; {_GIVE[path]}"


def _as_written(root: yaml.MappingNode, path: str) -> str:
    """The value of a field in the file's own words, cut to 60 characters."""
    node: Any = root
    for name in path.split("."):
        node = next(value for key, value in node.value if key.value == name)
    if isinstance(node, yaml.ScalarNode):
        text = str(node.value)
    else:
        text = node.start_mark.buffer[node.start_mark.index : node.end_mark.index] if node.start_mark.buffer else node.id
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _one_line(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return " ".join(str(error).replace('in "<byte string>", ', "in ").split())
