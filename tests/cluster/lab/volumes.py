"""Persistent volumes of the test cluster: folders of this machine, each bound to one claim by name."""

import os
from pathlib import Path
from typing import Final

from tests.cluster.lab.kubectl import Json

UNPRIVILEGED: Final = 65532
"""User of the project's images."""


def host_volume(name: str, folder: Path, claim: str, namespace: str) -> Json:
    """Make the folder and describe the volume: for that claim alone, kept when the claim goes, without a storage class."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chown(folder, UNPRIVILEGED, UNPRIVILEGED)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "100Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "claimRef": {"namespace": namespace, "name": claim},
            "hostPath": {"path": str(folder), "type": "Directory"},
        },
    }
