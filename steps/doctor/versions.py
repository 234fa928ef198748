"""Which versions go together (facts/hera-and-argo 3.1 and 8). Pure."""

import re
from collections.abc import Sequence
from typing import Final

from steps.doctor.finding import Finding, Standing, good, note, problem

Version = tuple[int, int, int]

ADMISSION_SINCE: Final[Version] = (1, 30, 0)
TESTED: Final[Version] = (1, 34, 0)
OLDEST: Final[Version] = (1, 31, 0)
NEWEST: Final[Version] = (1, 36, 0)
ARGO_NEW: Final[Version] = (4, 1, 2)
ARGO_OLD: Final[Version] = (4, 0, 10)
"""For Kubernetes before TESTED; everything older in 4.0 has a hole in Strict and open lock faults."""
EVENTS: Final[Version] = (1, 9, 11)


def parse(text: str) -> Version | None:
    """v1.34.4, 1.34.4+k3s1, v4.1.2; None if there is none in it."""
    found = re.search(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", text)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3] or 0))


def kubernetes(text: str) -> Finding:
    """The server: the admission policy needs 1.30, Argo Workflows 1.31 to 1.36."""
    version = parse(text)
    if version is None:
        return Finding(Standing.UNKNOWN, "Kubernetes", f"{text!r} is no version", "ask the cluster's administrator")
    if version < ADMISSION_SINCE:
        return problem("Kubernetes", f"{text} has no ValidatingAdmissionPolicy", "run it on Kubernetes 1.31 or newer")
    if version < OLDEST or version[:2] > NEWEST[:2]:
        return note("Kubernetes", f"{text} is outside 1.31 to 1.36, which Argo Workflows is tested on")
    return good("Kubernetes", text)


def controllers(images: Sequence[str], server: Version | None) -> list[Finding]:
    """Argo's controllers, by the tags of their images."""
    found = [_controller(image, server) for image in images]
    for name in ("workflow-controller", "argo-events"):
        if not any(image.rpartition("/")[2].startswith(name) for image in images):
            words = f"no Deployment of {name} is to be seen"
            found.append(Finding(Standing.UNKNOWN, name, words, "see which version runs, and that it is one docs/events.md names"))
    return found


def _controller(image: str, server: Version | None) -> Finding:
    name, _, tag = image.rpartition("/")[2].partition(":")
    version = parse(tag)
    if version is None:
        return Finding(Standing.UNKNOWN, name, f"{image} names no version", "see which version it is")
    if name.startswith("argo-events"):
        return good(name, tag) if version == EVENTS else note(name, f"{tag}; what is said of events was seen on 1.9.11")
    if version < ARGO_OLD or (4, 1, 0) <= version < ARGO_NEW:
        return problem(
            name, f"{tag} has known holes in Strict and in its locks", "deploy 4.1.2, or 4.0.10 on Kubernetes 1.31 to 1.33"
        )
    if version >= ARGO_NEW and server is not None and server < TESTED:
        return note(name, f"{tag} is tested on Kubernetes 1.34 to 1.36; for older ones there is 4.0.10")
    return good(name, tag)
