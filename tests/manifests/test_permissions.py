"""The roles as shipped grant what is written down by hand, no more and no less; the page on permissions knows every account.

What the API server makes of them is asked of a real one: tests/cluster/test_accounts.py, with the same list.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.rights import MAY, MAY_NOT, OWN, Right
from tests.cluster.scene import TEAM

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
Object = dict[str, Any]


def objects(*folders: Path) -> list[Object]:
    files = [path for folder in folders for path in sorted(folder.glob("*.yaml"))]
    return [one for path in files for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one]


def granted() -> Iterator[Right]:
    """Every right that a binding of the base or of the opt-in gives, at the place where it gives it."""
    base, opt_in = objects(DEPLOY / "base"), objects(DEPLOY / "opt-in")
    rules = {(one["kind"], one["metadata"]["name"]): one["rules"] for one in base if one["kind"] in ("Role", "ClusterRole")}
    for bindings, of_a_role in ((base, OWN), (opt_in, TEAM)):
        for binding in bindings:
            if binding["kind"] in ("RoleBinding", "ClusterRoleBinding"):
                namespace = None if binding["kind"] == "ClusterRoleBinding" else of_a_role
                ref = binding["roleRef"]
                for subject in binding["subjects"]:
                    yield from _rights(subject["name"], rules[ref["kind"], ref["name"]], namespace)


def _rights(account: str, rules: list[Object], namespace: str | None) -> Iterator[Right]:
    for rule in rules:
        assert set(rule) == {"apiGroups", "resources", "verbs"}, "a rule by name is not told apart here"
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                head, slash, sub = resource.partition("/")
                full = f"{head}.{group}{slash}{sub}" if group else resource
                yield from ((account, verb, full, namespace) for verb in rule["verbs"])


def test_the_roles_grant_what_is_written_down_no_more_and_no_less() -> None:
    assert set(granted()) == set(MAY)


def test_nothing_that_is_refused_is_granted_anywhere_it_would_count() -> None:
    given = set(granted())
    assert [one for one in MAY_NOT if {one, (*one[:3], None)} & given] == []


def test_no_role_of_ours_uses_a_wildcard_or_reads_secrets() -> None:
    rules = [rule for one in objects(*DEPLOY.rglob("*/")) for rule in one.get("rules", [])]
    assert rules
    words = {word for rule in rules for values in rule.values() for word in values}
    assert not words & {"*", "secrets", "impersonate", "escalate", "bind"}


def test_the_page_on_permissions_has_a_row_for_every_account() -> None:
    page = (ROOT / "docs" / "permissions.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| ([a-z]+) \|", page, re.MULTILINE))
    accounts = {one["metadata"]["name"] for one in objects(*DEPLOY.rglob("*/")) if one.get("kind") == "ServiceAccount"}
    assert accounts - rows == set()
