"""The digest of what was judged of an owner. Pure; survey and stop must agree to the byte.

Neither resourceVersion nor generation does it (facts/kubernetes section 1): the first moves with every status update, the
second does not move when a StatefulSet is annotated.
"""

import hashlib
from typing import Final

import msgspec

from steps.adapters.kubernetes.api import Json
from steps.adapters.kubernetes.fields import count_at, mapping_at, texts_at
from steps.contracts.policy import OptOut

OURS: Final = "gpu-reclaim.dev/"


def judged_digest(owner: Json, opt_out: OptOut) -> str:
    """sha256, hex, over the count, the pod template, and the annotations and labels that are ours or opt out."""
    judged = {
        "replicas": count_at(owner, "spec", "replicas"),
        "template": mapping_at(owner, "spec", "template"),
        **{
            field: {
                key: value
                for key, value in texts_at(owner, "metadata", field).items()
                if key.startswith(OURS) or key == opt_out.annotation
            }
            for field in ("annotations", "labels")
        },
    }
    return hashlib.sha256(msgspec.json.encode(judged, order="sorted")).hexdigest()
