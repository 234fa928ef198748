"""Whether a label selector matches labels, as Kubernetes defines it. Pure."""

from collections.abc import Mapping

from steps.adapters.kubernetes.api import Json
from steps.adapters.kubernetes.fields import list_at, text_at, texts_at


def matches(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """None matches nothing, an empty selector everything. An operator that is not known matches: a guard too many is safe."""
    if selector is None:
        return False
    wanted = texts_at(selector, "matchLabels").items()
    return all(labels.get(key) == value for key, value in wanted) and all(
        _holds(expression, labels) for expression in list_at(selector, "matchExpressions")
    )


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    value = labels.get(text_at(expression, "key") or "")
    values = expression.get("values")
    among = isinstance(values, list) and value in values
    match expression.get("operator"):
        case "In":
            return among
        case "NotIn":
            return not among
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return True
