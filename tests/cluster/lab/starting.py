"""Starts the cluster, after it ended one that was left over. Whatever fails here ends what was begun, and keeps the logs."""

import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.cluster.lab import argo, controlplane, gpu, node, seed
from tests.cluster.lab.debian import require_root_on_debian
from tests.cluster.lab.ending import end_cluster
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.gobuild import missing
from tests.cluster.lab.imagestore import import_images
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import MARK, Lab, evidence_folder, own
from tests.cluster.lab.locks import alone
from tests.cluster.lab.network import NetworkNamespace
from tests.cluster.lab.places import Places
from tests.cluster.lab.processes import Ledger, Started, identified
from tests.cluster.lab.progress import say, timed
from tests.cluster.lab.record import Record, read_record, write_record
from tests.cluster.lab.volumes import host_volume

CHANGING: Final = "starting-or-ending"
OTHER_PROGRAM_S: Final = 240.0
EVIDENCE_CLAIM: Final = "gpu-reclaim-evidence"


@contextmanager
def started(where: Places, network: NetworkNamespace, images: Sequence[Path], *, events: bool = False) -> Iterator[Lab]:
    """A cluster that lives as long as the block, and ends with it however that ends."""
    try:
        yield start(where, network, images, events=events, owner=identified("tests", os.getpid()))
    finally:
        with timed("ending the cluster"):
            stop(where)


def start(where: Places, network: NetworkNamespace, images: Sequence[Path], *, events: bool, owner: Started | None) -> Lab:
    """A cluster that runs until `stop`. Raises LabError with the tail of the log of the part that failed."""
    require_root_on_debian()
    if lacking := missing(where):
        raise LabError(f"not built yet: {', '.join(lacking)}; run `python -m tests.cluster.lab build`")
    with alone(where, CHANGING, patience_s=OTHER_PROGRAM_S):
        _make_room(where)
        node.refuse_foreign_kubelet()
        where.run.mkdir(parents=True)
        write_record(where, Record(network=network.name, owner=owner))
        try:
            return _start(where, network, images, events=events)
        except BaseException:
            end_cluster(where, network)
            raise


def stop(where: Places) -> None:
    """End the cluster of the run folder, if there is one."""
    with alone(where, CHANGING, patience_s=OTHER_PROGRAM_S):
        record = read_record(where)
        if record is not None:
            end_cluster(where, NetworkNamespace(record.network))


def _make_room(where: Places) -> None:
    """End a cluster that was left over. Raises LabError if it belongs to a program that still runs."""
    record = read_record(where)
    if record is not None:
        if record.owner is not None and record.owner.alive():
            raise LabError(
                f"the cluster in {where.run} belongs to a running test session, PID {record.owner.pid}; wait for its end"
            )
        with timed("ending a cluster that was left over"):
            end_cluster(where, NetworkNamespace(record.network))
    shutil.rmtree(where.run, ignore_errors=True)
    shutil.rmtree(where.logs, ignore_errors=True)


def _start(where: Places, network: NetworkNamespace, images: Sequence[Path], *, events: bool) -> Lab:
    lab, ledger = own(where, network), Ledger(where.run, where.logs)
    network.make()
    controlplane.write_identities(where)
    seed.plant(where, network, ledger, lab.kubectl)
    controlplane.start_api(where, network, ledger)
    gpu.prepare(where)
    node.start_containerd(where, network, ledger, gpu.RUNTIME)
    with ThreadPoolExecutor(max_workers=1) as beside:
        importing = beside.submit(import_images, where, node.socket_of(where), images)
        controlplane.wait_for_api(ledger, lab.kubectl)
        say("API ready")
        controlplane.start_controllers(where, network, ledger)
        node.start_kubelet(where, network, ledger)
        gpu.start_device_plugin(ledger)
        lab.kubectl.apply(*_objects(where))
        argo.wait_for_kinds(lab.kubectl)
        argo.start_workflows(where, network, ledger, lab.kubectl)
        if events:
            lab.events()
        importing.result()
    say("images imported, Argo started")
    node.wait_until_ready(ledger, lab.kubectl)
    say(f"node {lab.node} Ready")
    ledger.wait("device-plugin", f"the node advertises {gpu.RESOURCE}", lambda: lab.gpus() == gpu.COUNT, within_s=gpu.ADVERTISED_S)
    say(f"cluster is up: {lab.gpus()} x {gpu.RESOURCE}")
    return lab


def _objects(where: Places) -> Sequence[Json]:
    marked = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "labels": {MARK: "true"}}}
    own_namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": argo.NAMESPACE}}
    evidence = host_volume("evidence", evidence_folder(where), EVIDENCE_CLAIM, argo.NAMESPACE)
    return [marked, own_namespace, gpu.runtime_class(), evidence]
