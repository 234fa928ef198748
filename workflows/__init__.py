"""Hera: which step runs when, where, as whom. One file a WorkflowTemplate; rendered to `manifests/`."""

from pathlib import Path
from typing import Final

MANIFESTS: Final = Path(__file__).parent / "manifests"
"""The rendered WorkflowTemplates, as deployed."""
