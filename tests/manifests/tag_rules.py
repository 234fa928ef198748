"""What no schema sees of hooks: a secret that is named, and filters that let through what is meant and nothing else."""

import re
from typing import Final

from tests.manifests.event_rules import Content, Objects, of_kind

EVALUATED: Final = ("{{=1+41}}", "v{{workflow.name}}", "{{")


def hooks_are_verified(objects: Objects) -> list[str]:
    """Without a secret the source believes everybody. Exactly one of repositories and organizations, or it does not start."""
    found = []
    for source in of_kind(objects, "EventSource"):
        for event, hook in source["spec"].get("github", {}).items():
            secret = hook.get("webhookSecret", {})
            if not secret.get("name") or not secret.get("key"):
                found.append(f"{source['metadata']['name']}/{event} verifies no signature")
            if bool(hook.get("repositories")) == bool(hook.get("organizations")):
                found.append(f"{source['metadata']['name']}/{event} names repositories and organizations, or neither")
    return found


def hooks_say_what_starts_a_run(objects: Objects) -> list[str]:
    """Event, repository, ref and delivery are compared with patterns that are anchored at both ends and take no braces."""
    hooks = {
        (source["metadata"]["name"], event)
        for source in of_kind(objects, "EventSource")
        for event in source["spec"].get("github", {})
    }
    found = []
    for sensor in of_kind(objects, "Sensor"):
        for dependency in sensor["spec"]["dependencies"]:
            if (dependency["eventSourceName"], dependency["eventName"]) not in hooks:
                continue
            filters = dependency.get("filters", {}).get("data", [])
            lacking = {"body.X-GitHub-Event", "body.repository.full_name", "body.ref", "body.X-GitHub-Delivery"}
            lacking -= {one["path"] for one in filters}
            found += [f"{sensor['metadata']['name']} does not look at {path}" for path in sorted(lacking)]
            found += [
                f"{sensor['metadata']['name']}: {one['path']} {pattern}"
                for one in filters
                for pattern in one["value"]
                if _loose(pattern)
            ]
            if dependency["filters"].get("dataLogicalOperator", "and") != "and":
                found.append(f"{sensor['metadata']['name']}: one filter alone would do")
    return found


def _loose(pattern: str) -> bool:
    """Not anchored, or with room for what Argo would evaluate."""
    inside = pattern.removeprefix("^").removesuffix("$")
    anchored = pattern == f"^{inside}$" and "|" not in re.sub(r"\([^)]*\)", "", inside)
    return not anchored or any(
        re.search(pattern, f"{before}{text}") for text in EVALUATED for before in ("", "refs/tags/", "refs/tags/v")
    )


def let_through(sensor: Content, event: Content) -> bool:
    """Whether the filters of a Sensor's first dependency take an event: a string at each path, matched by one of the patterns."""
    filters = sensor["spec"]["dependencies"][0]["filters"]["data"]
    return all(_matches(_at(event, one["path"]), one["value"]) for one in filters)


def _at(event: Content, path: str) -> object:
    found: object = event
    for key in path.split("."):
        if not isinstance(found, dict) or key not in found:
            return None
        found = found[key]
    return found


def _matches(value: object, patterns: list[str]) -> bool:
    """In Go `$` means the very end; Python's would take a line feed after it."""
    return isinstance(value, str) and any(re.search(re.sub(r"\$$", r"\\Z", pattern), value) for pattern in patterns)
