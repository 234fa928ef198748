"""Fan-outs: the items of a withParam, the names of their nodes, and the list that their outputs become.

All as Argo Workflows 4.0.5 does it (workflow/controller/operator.go: processItem, generateNodeName,
processAggregateNodeOutputs), byte for byte, because node names and aggregates are compared with it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from steps.contracts.errors import BadInput

_LARGEST_EXACT: Final = 2**53
"""Go reads a JSON number of an aggregate as a float64: a larger whole number would come out changed."""


def items_of(text: str) -> list[Any] | None:
    """The list in a withParam value, or None if it is no JSON list (the controller then errors the task)."""
    try:
        items = json.loads(text)
    except json.JSONDecodeError:
        return None
    return items if isinstance(items, list) else None


def item_values(item: Any) -> dict[str, str]:
    """The tags that one item gives: `item`, and `item.KEY` of an object. Raises BadInput for a null."""
    values = {"item": item if isinstance(item, str) else _shown(item)}
    if isinstance(item, dict):
        values["item"] = _go_escapes(_shown({key: item[key] for key in sorted(item)}))
        values |= {f"item.{key}": _shown(value) for key, value in item.items()}
    return values


def child_name(task: str, index: int, item: Any) -> str:
    """`task(0:word)`; an object is shown as its sorted `key:value` pairs. Brackets of the item are dropped."""
    if isinstance(item, dict):
        words = ",".join(sorted(f"{key}:{_shown(value)}" for key, value in item.items()))
    elif isinstance(item, list):
        words = "[" + " ".join(_shown(value) for value in item) + "]"  # Go's %v of a slice
    else:
        words = _shown(item)
    return f"{task}({index}:{words.replace('(', '').replace(')', '')})"


def aggregate(values: Sequence[str]) -> str:
    """The list of one output of all children that succeeded: of JSON objects and lists only if every value is one,
    else of strings."""
    parsed = []
    for value in values:
        try:
            inner = json.loads(value)
        except json.JSONDecodeError:
            return _go_json(list(values))
        if not isinstance(inner, dict | list):
            return _go_json(list(values))
        parsed.append(_go_numbers(inner))
    return _go_json(parsed)


def aggregate_all(outputs: Sequence[Mapping[str, str]]) -> str:
    """The list of all outputs of all children that succeeded and have any: objects of texts."""
    return _go_json([dict(one) for one in outputs if one])


def _shown(value: Any) -> str:
    """One item as text: a string without its quotes, anything else as compact JSON."""
    if value is None:
        raise BadInput("an item of a fan-out is null, which the local runner does not know; leave it out of the list")
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)[1:-1]
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _go_json(value: Any) -> str:
    """As Go's json.Marshal writes it: keys sorted, no blanks, and five characters escaped."""
    return _go_escapes(json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False))


def _go_escapes(text: str) -> str:
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _go_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _go_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_go_numbers(inner) for inner in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if abs(value) > _LARGEST_EXACT:
        raise BadInput(f"an aggregated output holds the number {value}, which the controller cannot keep exactly; write it as text")
    return int(value) if value == int(value) else value
