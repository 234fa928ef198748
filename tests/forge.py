"""Deliveries of GitHub and Gitea as their hooks send them: bodies, headers and signatures of the two forges."""

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

REPOSITORY: Final = "gpu-people/experiments"
COMMIT: Final = "1f0c3a9d5b7e2f4860a1c9d3e5f7b8a2c4d6e8f0"
TAG_OBJECT: Final = "aa11bb22cc33dd44ee55ff6600112233445566ff"
"""Of an annotated tag: what was pushed is this object, which names the commit."""
NOTHING: Final = "0" * 40
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request of a hook. id: a UUID with both forges."""

    event: str
    body: Json
    id: str = field(default_factory=lambda: str(uuid4()))

    @property
    def text(self) -> str:
        return json.dumps(self.body)

    def github(self, secret: str) -> dict[str, str]:
        """Headers of GitHub: both signatures, each with the name of its hash."""
        return {
            "Content-Type": "application/json",
            "X-GitHub-Event": self.event,
            "X-GitHub-Delivery": self.id,
            "X-Hub-Signature": f"sha1={self._mac(secret, hashlib.sha1)}",
            "X-Hub-Signature-256": f"sha256={self._mac(secret, hashlib.sha256)}",
        }

    def gitea(self, secret: str) -> dict[str, str]:
        """Headers of Gitea: its own, those of Gogs, and GitHub's."""
        plain = self._mac(secret, hashlib.sha256)
        own = {f"X-{forge}-Signature": plain for forge in ("Gitea", "Gogs")}
        names = {f"X-{forge}-Event": self.event for forge in ("Gitea", "Gogs")}
        return {**self.github(secret), **own, **names, "X-GitHub-Event-Type": self.event, "X-Gitea-Delivery": self.id}

    def _mac(self, secret: str, method: Callable[..., Any]) -> str:
        return hmac.new(secret.encode(), self.text.encode(), method).hexdigest()


def github_push(ref: str, *, deleted: bool = False, annotated: bool = False) -> Delivery:
    """A ref was pushed, or with `deleted` taken away. `after` is what was pushed, `head_commit` the commit that it points to."""
    after = NOTHING if deleted else TAG_OBJECT if annotated else COMMIT
    body: Json = {
        "ref": ref,
        "before": COMMIT if deleted else NOTHING,
        "after": after,
        "created": not deleted,
        "deleted": deleted,
        "forced": False,
        "base_ref": None if deleted else "refs/heads/main",
        "compare": f"https://github.com/{REPOSITORY}/compare/v1.2.3",
        "commits": [],
        "head_commit": None if deleted else {"id": COMMIT, "tree_id": TAG_OBJECT, "message": "{{=1+41}}", "distinct": True},
        "repository": {"id": 1, "name": "experiments", "full_name": REPOSITORY, "private": True},
        "pusher": {"name": "someone", "email": "someone@example.org"},
        "sender": {"login": "someone", "id": 2, "type": "User"},
    }
    return Delivery("push", body)


def gitea_push(ref: str, *, deleted: bool = False) -> Delivery:
    body: Json = {
        "ref": ref,
        "before": COMMIT if deleted else NOTHING,
        "after": NOTHING if deleted else TAG_OBJECT,
        "compare_url": f"https://git.example.org/{REPOSITORY}/compare/{NOTHING}...{TAG_OBJECT}",
        "commits": [],
        "total_commits": 0,
        "head_commit": None
        if deleted
        else {"id": COMMIT, "message": "a change\n", "added": None, "removed": None, "modified": None},
        "repository": {"id": 3, "name": "experiments", "full_name": REPOSITORY, "default_branch": "main"},
        "pusher": {"id": 4, "login": "someone"},
        "sender": {"id": 4, "login": "someone"},
    }
    return Delivery("push", body)


def github_create(tag: str) -> Delivery:
    """What GitHub sends besides the push, to a hook that wants it. It names no commit, and its ref is the short name."""
    repository = {"id": 1, "name": "experiments", "full_name": REPOSITORY}
    body = {"ref": tag, "ref_type": "tag", "master_branch": "main", "pusher_type": "user", "repository": repository}
    return Delivery("create", body)


def github_ping() -> Delivery:
    """The first word of a new hook."""
    return Delivery(
        "ping", {"zen": "Anything added dilutes everything else.", "hook_id": 5, "repository": {"full_name": REPOSITORY}}
    )
