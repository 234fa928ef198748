"""Runs a rendered WorkflowTemplate on this machine: the very YAML that is deployed, each container a subprocess.

It honours what our manifests use, refuses every field and construct it does not know, and cannot show what `fields.IGNORED`
lists. It is compared with the real controller by the conformance templates (tests/conformance).
"""

from workflows.local.engine import run_locally
from workflows.local.manifest import Manifest, load
from workflows.local.setting import Setting

__all__ = ["Manifest", "Setting", "load", "run_locally"]
