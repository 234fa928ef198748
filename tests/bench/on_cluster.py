"""The test cluster for the rows that need it: each row starts one of its own, so that no row leans on what another left."""

from collections.abc import Callable

from tests.bench.row import Row, not_measured
from tests.cluster.lab.debian import install_missing, require_root_on_debian
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.gobuild import build
from tests.cluster.lab.images import make_images
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.network import DEFAULT_NAME, NetworkNamespace
from tests.cluster.lab.places import places
from tests.cluster.lab.starting import started


def row_on_cluster(name: str, target: float, measure: Callable[[Lab], Row], *, events: bool = False) -> list[Row]:
    """The one row that `measure` gives; not measured, with the reason, where the test cluster cannot run."""
    try:
        require_root_on_debian()
        install_missing()
        where = places()
        build(where)
        with started(where, NetworkNamespace(DEFAULT_NAME), make_images(where), events=events) as lab:
            return [measure(lab)]
    except LabError as error:
        return [not_measured(name, target, str(error))]
