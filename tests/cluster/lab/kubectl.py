"""kubectl as the tests use it: every call has a deadline, objects are plain JSON, absence is None and never an error."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

from tests.cluster.lab.commands import output_of, ran
from tests.cluster.lab.errors import LabError

Json = dict[str, Any]
CALL_S: Final = 30.0
POLL_S: Final = 0.5


class Kubectl:
    """prefix: what runs before kubectl, such as nsenter; empty for a cluster that this machine reaches by itself."""

    def __init__(self, binary: Path, kubeconfig: Path, prefix: Sequence[str], cache: Path) -> None:
        self._argv: Final = [*prefix, str(binary), f"--kubeconfig={kubeconfig}", f"--cache-dir={cache}"]

    def argv(self, *words: str, account: str | None = None) -> list[str]:
        """The whole command line. account: "namespace:name" of a service account to act as."""
        acting = [] if account is None else [f"--as=system:serviceaccount:{account}", "--as-group=system:serviceaccounts"]
        return [*self._argv, *acting, *words]

    def ran(
        self, *words: str, stdin: str | None = None, timeout_s: float = CALL_S, account: str | None = None
    ) -> CompletedProcess[str]:
        """The finished run, whatever its exit code: for refusals that a test expects."""
        return ran(self.argv(*words, account=account), timeout_s=timeout_s, stdin=stdin)

    def __call__(self, *words: str, stdin: str | None = None, timeout_s: float = CALL_S, account: str | None = None) -> str:
        """What it wrote to stdout. Raises LabError with the server's words if it failed."""
        return output_of(self.argv(*words, account=account), timeout_s=timeout_s, stdin=stdin)

    def apply(self, *manifests: str | Path | Mapping[str, Any], namespace: str | None = None, account: str | None = None) -> None:
        """Server-side apply of files, folders with a kustomization, YAML texts and objects, in one call for each kind of them."""
        common = ["apply", "--server-side", "--force-conflicts", *([f"--namespace={namespace}"] if namespace else [])]
        files = [manifest for manifest in manifests if isinstance(manifest, Path) and not manifest.is_dir()]
        if files:
            self(*common, *(f"--filename={path}" for path in files), account=account, timeout_s=60)
        for folder in (manifest for manifest in manifests if isinstance(manifest, Path) and manifest.is_dir()):
            self(*common, f"--kustomize={folder}", account=account, timeout_s=60)
        texts = [m if isinstance(m, str) else json.dumps(m) for m in manifests if not isinstance(m, Path)]
        if texts:
            self(*common, "--filename=-", stdin="\n---\n".join(texts), account=account, timeout_s=60)

    def get(self, kind: str, name: str, namespace: str | None = None) -> Json | None:
        """One object, or None if there is none of that name."""
        answer = self("get", kind, name, "--output=json", "--ignore-not-found", *_in(namespace))
        return _object(answer) if answer.strip() else None

    def list(self, kind: str, namespace: str | None = None, *, selector: str = "") -> Sequence[Json]:
        """All objects of a kind; of all namespaces if none is given."""
        where = _in(namespace) or ["--all-namespaces"]
        items = _object(self("get", kind, "--output=json", f"--selector={selector}", *where))["items"]
        return [item for item in items if isinstance(item, dict)]

    def create(self, manifest: Mapping[str, Any], *, account: str | None = None) -> Json:
        """The object as the server made it: for generateName, and for what a refusal must stop."""
        return _object(self("create", "--filename=-", "--output=json", stdin=json.dumps(manifest), account=account))

    def delete(self, kind: str, name: str, namespace: str | None = None, *, wait: bool = True, timeout_s: float = 60.0) -> None:
        """Delete; an object that is not there is fine."""
        self("delete", kind, name, "--ignore-not-found", f"--wait={str(wait).lower()}", *_in(namespace), timeout_s=timeout_s)

    def execute(
        self, pod: str, namespace: str, argv: Sequence[str], *, container: str | None = None, timeout_s: float = CALL_S
    ) -> str:
        """What a command in a pod wrote to stdout."""
        inside = [f"--container={container}"] if container else []
        return self("exec", pod, f"--namespace={namespace}", *inside, "--", *argv, timeout_s=timeout_s)

    def logs(self, pod: str, namespace: str, container: str = "main") -> str:
        return self("logs", pod, f"--namespace={namespace}", f"--container={container}", "--tail=200")

    def may(self, account: str, verb: str, resource: str, namespace: str | None = None, *, name: str = "") -> bool:
        """Whether a service account, "namespace:name", may; resource as in `deployments.apps/scale`."""
        (answer,) = self.may_each([access_review(account, verb, resource, namespace, name=name)])
        return answer

    def may_each(self, reviews: Sequence[Json]) -> tuple[bool, ...]:
        """The answer to each SubjectAccessReview, in order, for one start of kubectl."""
        many = {"apiVersion": "v1", "kind": "List", "items": list(reviews)}
        answers = list(objects(self("create", "--filename=-", "--output=json", stdin=json.dumps(many), timeout_s=60)))
        if [_asked(one) for one in answers] != [_asked(one) for one in reviews]:
            raise LabError(f"kubectl answered {len(answers)} of {len(reviews)} questions about rights, or others than were asked")
        return tuple(bool(one["status"]["allowed"]) for one in answers)

    def wait(self, what: str, ready: Callable[[], bool], *, within_s: float) -> None:
        """Ask every half second until ready() holds. Raises LabError naming `what` once the time is up."""
        deadline_s = time.monotonic() + within_s
        while not ready():
            if time.monotonic() > deadline_s:
                raise LabError(f"not within {within_s:g} s: {what}")
            time.sleep(POLL_S)


def access_review(account: str, verb: str, resource: str, namespace: str | None = None, *, name: str = "") -> Json:
    """The question whether a service account may.

    It is what `kubectl auth can-i` asks, put by hand, because kubectl asks about another group where the server has no such
    resource (KEDA's, Argo CD's), and so answers no to a right that was granted.
    """
    target, _, subresource = resource.partition("/")
    plural, _, group = target.partition(".")
    home = account.partition(":")[0]
    wanted = {"verb": verb, "group": group, "resource": plural, "subresource": subresource, "name": name}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{account}",
            "groups": ["system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{home}"],
            "resourceAttributes": {**wanted, "namespace": namespace or ""},
        },
    }


def _asked(review: Json) -> Json:
    """Who and what a review is about; the server leaves out what is empty."""
    spec = review["spec"]
    return {"user": spec["user"], **{key: value for key, value in spec["resourceAttributes"].items() if value}}


def _in(namespace: str | None) -> list[str]:
    return [f"--namespace={namespace}"] if namespace else []


def _object(text: str) -> Json:
    parsed = json.loads(text)
    if not isinstance(parsed, dict):
        raise LabError(f"kubectl gave no object but: {text[:200]}")
    return parsed


def objects(text: str) -> Iterator[Json]:
    """The objects that kubectl wrote one after the other."""
    decoder, rest = json.JSONDecoder(), text.strip()
    while rest:
        parsed, end = decoder.raw_decode(rest)
        if not isinstance(parsed, dict):
            raise LabError(f"kubectl gave no object but: {rest[:200]}")
        yield parsed
        rest = rest[end:].lstrip()
