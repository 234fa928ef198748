"""All images of the test cluster, made where they are not up to date."""

from pathlib import Path
from typing import Final

from tests.cluster.lab.bases import make_argo_events, make_argoexec, make_pause, make_python
from tests.cluster.lab.dockerfiles import OWN_IMAGES, make_own
from tests.cluster.lab.locks import alone
from tests.cluster.lab.places import Places

OTHER_PROGRAM_S: Final = 1800.0


def make_images(where: Places) -> list[Path]:
    """The tars that the cluster's node is given. Raises LabError naming what could not be made."""
    with alone(where, "making-images", patience_s=OTHER_PROGRAM_S):
        return _made(where)


def _made(where: Places) -> list[Path]:
    foreign = [make_pause(where), make_argoexec(where), make_argo_events(where), make_python(where)]
    return [*foreign, *(make_own(where, image) for image in OWN_IMAGES)]
