"""Argo Events: what starts which workflow. Rendered to `manifests/`.

Plain dicts, since Hera's classes for Argo Events render wrong manifests (facts/hera-and-argo 2.4).
"""

from pathlib import Path
from typing import Final

MANIFESTS: Final = Path(__file__).parent / "manifests"
"""The rendered objects, a folder for each set that an overlay picks."""
