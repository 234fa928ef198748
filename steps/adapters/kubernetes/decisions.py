"""The decisions that lead to an act, kept where only decide's account writes, and gone with the Workflow that owns them."""

from typing import Final

from steps.adapters.kubernetes.answers import body_of, unavailable
from steps.adapters.kubernetes.api import Api
from steps.adapters.kubernetes.documents import config_map, document_in, path_to
from steps.contracts.decision import Decisions
from steps.contracts.errors import SourceUnavailable


class ConfigMapDecisions:
    """Fits ports.DecisionStore. Immutable: what stop loads is what was kept first."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api: Final = api
        self._namespace: Final = namespace

    def keep(self, decisions: Decisions, run_uid: str) -> None:
        """Fits the port. The same ids count as the same decisions, so that a killed step can be run again; others of the same
        run and shard are never overwritten: SourceUnavailable."""
        name = _name(decisions.run, decisions.shard)
        owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": decisions.run, "uid": run_uid}
        body = config_map(name, self._namespace, "decisions", decisions, metadata={"ownerReferences": [owner]}, immutable=True)
        path = path_to(self._namespace)
        answer = self._api.create(path, body)
        if answer.ok:
            return
        kept = self.load(decisions.run, decisions.shard) if answer.status == 409 else None
        if kept is None:
            raise unavailable(answer, "create", f"{path}/{name}")
        if _ids(kept) != _ids(decisions):
            raise SourceUnavailable(
                f"{name} already holds other decisions of this run; submit a new run instead of repeating this one"
            )

    def load(self, run: str, shard: int) -> Decisions | None:
        """Fits the port; None: no such run, or its Workflow is gone."""
        path = path_to(self._namespace, _name(run, shard))
        answer = self._api.get(path)
        return None if answer.status == 404 else document_in(body_of(answer, "get", path), Decisions)


def _name(run: str, shard: int) -> str:
    return f"gpu-reclaim-decisions-{run}-{shard}"


def _ids(decisions: Decisions) -> set[str]:
    return {decision.decision_id for decision in decisions.decisions}
