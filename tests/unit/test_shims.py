"""Whose sandbox a process runs in, told by the containerd shim above it: without a mount, and with nothing kept but annotations."""

import json
from pathlib import Path

import pytest

from steps.adapters.bundles import Bundles, RunningContainer
from steps.adapters.pods_on_disk import PodFolders
from steps.adapters.shims import MAX_CLIMB, Shims
from tests.unit.proc_tree import ProcTree, proc_tree, stat_line

UID = "11111111-aaaa-4bbb-8ccc-000000000001"
SANDBOX, CONTAINER = "5a" * 32, "c0" * 32
SHIM = "/usr/bin/containerd-shim-runsc-v1"
HOST = "0::/system.slice/containerd.service\n"
IN_A_POD = f"0::/kubepods/besteffort/pod{UID}/{CONTAINER}\n"
FOUND = RunningContainer(id=SANDBOX, pod_uid=UID, namespace="team", pod="notebook-0", container=None)


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    return proc_tree(tmp_path)


def bundle(tmp_path: Path, one: str = SANDBOX, kind: str = "sandbox") -> Path:
    """As containerd writes it: annotations, and an environment that nobody may read."""
    folder = tmp_path / "k8s.io" / one
    folder.mkdir(parents=True)
    notes = {"sandbox-uid": UID, "sandbox-namespace": "team", "sandbox-name": "notebook-0", "container-type": kind}
    spec = {"annotations": {f"io.kubernetes.cri.{name}": value for name, value in notes.items()}}
    (folder / "config.json").write_text(json.dumps({**spec, "process": {"env": ["PASSWORD=hunter2"]}}))
    return folder


def shim(tree: ProcTree, cwd: Path, *, program: str = SHIM, cgroup: str = HOST, status: str = "x\nNSpid:\t50\n") -> int:
    pid = 50
    folder = tree.process(pid, stat_line(pid, "containerd-shim", parent=1), status=status, cgroup=cgroup)
    (folder / "exe").unlink()
    (folder / "exe").symlink_to(program)
    (folder / "cwd").symlink_to(cwd)
    return pid


def below(tree: ProcTree, parent: int, pid: int = 60) -> int:
    tree.process(pid, stat_line(pid, parent=parent), cgroup=IN_A_POD)
    return pid


def told(tree: ProcTree, *pids: int) -> tuple[RunningContainer, ...]:
    return Shims(tree.root).sandboxes(pids)


def test_a_process_is_of_the_sandbox_that_the_shim_above_it_was_started_for(tree: ProcTree, tmp_path: Path) -> None:
    sentry = below(tree, shim(tree, bundle(tmp_path)))
    worker = below(tree, below(tree, sentry, 61), 62)
    assert told(tree, sentry, worker) == (FOUND,)


def test_siblings_share_a_way_up_and_each_pod_keeps_its_own_shim(tree: ProcTree, tmp_path: Path) -> None:
    parent = below(tree, shim(tree, bundle(tmp_path)), 61)
    siblings = [below(tree, parent, pid) for pid in (62, 63)]
    tree.process(70, stat_line(70, parent=1), cgroup=HOST)
    strangers = [below(tree, 70, pid) for pid in (71, 72)]
    assert [told(tree, *order) for order in ([*siblings, *strangers, parent], [*strangers, parent, *siblings])] == [(FOUND,)] * 2
    assert told(tree, *strangers) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"program": "/usr/bin/python3"},
        {"cgroup": IN_A_POD},
        {"status": "x\nNSpid:\t50\t7\n"},
        {"status": "x\n"},
    ],
    ids=["another program", "in a pod's cgroup", "in another PID namespace", "its PID namespace is not known"],
)
def test_what_only_looks_like_a_shim_names_no_sandbox(tree: ProcTree, tmp_path: Path, changes: dict[str, str]) -> None:
    """A tenant may call itself a shim and stand in a folder that names somebody else's pod."""
    assert told(tree, below(tree, shim(tree, bundle(tmp_path), **changes))) == ()


@pytest.mark.parametrize(("folder", "kind"), [(CONTAINER, "container"), ("not-an-id", "sandbox")])
def test_a_bundle_that_is_no_sandboxs_tells_nothing(tree: ProcTree, tmp_path: Path, folder: str, kind: str) -> None:
    assert told(tree, below(tree, shim(tree, bundle(tmp_path, folder, kind)))) == ()


def test_a_shim_without_a_readable_bundle_tells_nothing(tree: ProcTree, tmp_path: Path) -> None:
    assert told(tree, below(tree, shim(tree, tmp_path / SANDBOX))) == ()


def test_processes_of_the_host_and_such_as_are_gone_have_no_sandbox(tree: ProcTree) -> None:
    tree.process(70, stat_line(70, parent=1))
    assert told(tree, 70, 71) == ()


def test_a_chain_of_parents_without_an_end_is_given_up(tree: ProcTree, tmp_path: Path) -> None:
    top = shim(tree, bundle(tmp_path))
    for pid in range(100, 100 + MAX_CLIMB):
        below(tree, top if pid == 100 else pid - 1, pid)
    assert (told(tree, 99 + MAX_CLIMB), told(tree, 98 + MAX_CLIMB)) == ((FOUND,), (FOUND,))
    assert told(tree, below(tree, 99 + MAX_CLIMB, 200)) == ()


def test_where_the_folder_of_bundles_is_not_here_the_shims_tell_the_sandboxes_of_pods(tree: ProcTree, tmp_path: Path) -> None:
    sentry = below(tree, shim(tree, bundle(tmp_path)))
    logs = tmp_path / "logs"
    (logs / f"team_notebook-0_{UID}").mkdir(parents=True)
    absent = tmp_path / "absent"
    folders = PodFolders(logs=logs, links=absent, pods=absent, bundles=Bundles([absent]), shims=Shims(tree.root))
    read = folders.read([UID], [SANDBOX], [sentry])
    (pod,) = read.known() or ()
    assert (pod.uid, pod.name, pod.sandbox_ids, pod.containers) == (UID, "notebook-0", (SANDBOX,), None)
    assert "the runtime's shims" in str(read.source)
    assert "hunter2" not in str(read)
