"""Names of pods from the kubelet's folders, when nobody else knows them any more."""

import json
from pathlib import Path

import pytest

from steps.adapters.bundles import Bundles
from steps.adapters.pods_on_disk import PodFolders
from steps.contracts.document import State
from steps.contracts.node_facts import PodOnDisk

UID = "11111111-aaaa-4bbb-8ccc-000000000001"
REBORN = "11111111-aaaa-4bbb-8ccc-000000000002"
HASH = "0123456789abcdef0123456789abcdef"
OLD, NEW, OTHER = "a" * 64, "b" * 64, "c" * 64


@pytest.fixture
def kubelet(tmp_path: Path) -> Path:
    """A kubelet's folders with one pod that restarted, and one under the same name that was born again."""
    for uid in (UID, REBORN):
        (tmp_path / "logs" / f"team_notebook-0_{uid}" / "main").mkdir(parents=True)
    (tmp_path / "links").mkdir()
    (tmp_path / "pods" / REBORN).mkdir(parents=True)
    for uid, restarts, container in ((UID, 0, OLD), (UID, 1, NEW), (REBORN, 0, OTHER)):
        link = tmp_path / "links" / f"notebook-0_team_main-{container}.log"
        link.symlink_to(f"/var/log/pods/team_notebook-0_{uid}/main/{restarts}.log")
    return tmp_path


def folders(kubelet: Path) -> PodFolders:
    return PodFolders(
        logs=kubelet / "logs",
        links=kubelet / "links",
        pods=kubelet / "pods",
        bundles=Bundles([kubelet / "none", kubelet / "state"]),
    )


def bundle(kubelet: Path, container: str, **notes: str) -> None:
    """What containerd's CRI writes for a container that runs; its environment must stay where it is."""
    folder = kubelet / "state" / "io.containerd.runtime.v2.task" / "k8s.io" / container
    folder.mkdir(parents=True)
    annotations = {f"io.kubernetes.cri.{key.replace('_', '-')}": value for key, value in notes.items()}
    config = {"process": {"env": ["TOKEN=hunter2"]}, "annotations": annotations}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def one(kubelet: Path, uid: str) -> PodOnDisk:
    known = folders(kubelet).read([uid], [], []).known()
    assert known is not None
    (found,) = known
    return found


def test_a_pod_has_its_name_by_its_log_folder_and_its_containers_by_their_links_newest_first(kubelet: Path) -> None:
    found = one(kubelet, UID)
    assert (found.namespace, found.name) == ("team", "notebook-0")
    assert found.containers is not None
    assert [(container.name, container.container_ids) for container in found.containers] == [("main", (NEW, OLD))]


def test_two_pods_of_one_name_are_told_apart_by_uid(kubelet: Path) -> None:
    containers = one(kubelet, REBORN).containers
    assert containers is not None
    assert [container.container_ids for container in containers] == [(OTHER,)]


def test_the_pods_own_folder_says_whether_the_kubelet_still_has_it(kubelet: Path) -> None:
    assert (one(kubelet, UID).kept, one(kubelet, REBORN).kept) == (False, True)


def test_a_uid_that_left_no_trace_is_said_to_be_gone_where_the_folders_can_be_listed(kubelet: Path) -> None:
    found = one(kubelet, "99999999-aaaa-4bbb-8ccc-000000000009")
    assert (found.name, found.namespace, found.kept) == (None, None, False)


@pytest.mark.parametrize("absent", [True, False], ids=["not there", "empty"])
def test_without_the_pods_own_folders_nothing_is_said_to_be_gone(kubelet: Path, absent: bool) -> None:
    """A kubelet with another --root-dir leaves the usual folder empty: that must not make every pod look gone."""
    (kubelet / "pods" / REBORN).rmdir()
    if absent:
        (kubelet / "pods").rmdir()
    assert one(kubelet, UID).kept is None
    assert folders(kubelet).read(["99999999-aaaa-4bbb-8ccc-000000000009"], [], []).known() == ()


def test_a_static_pod_stands_there_under_its_manifest_hash(kubelet: Path) -> None:
    (kubelet / "logs" / f"kube-system_etcd-node-a_{HASH}").mkdir()
    assert one(kubelet, HASH).name == "etcd-node-a"


def test_without_log_links_containers_are_unknown_and_not_none(kubelet: Path) -> None:
    for link in (kubelet / "links").iterdir():
        link.unlink()
    (kubelet / "links").rmdir()
    assert one(kubelet, UID).containers is None


def test_what_is_not_the_kubelets_is_passed_over(kubelet: Path) -> None:
    (kubelet / "logs" / "some_thing").mkdir()
    (kubelet / "links" / "README").write_text("no link")
    (kubelet / "links" / f"notebook-0_team_main-{'d' * 64}.log").symlink_to("elsewhere")
    containers = one(kubelet, UID).containers
    assert containers is not None
    assert [container.container_ids for container in containers] == [(NEW, OLD)]


def test_no_kubelet_at_all_is_absent_with_a_reason(tmp_path: Path) -> None:
    read = folders(tmp_path).read([UID], [], [])
    assert (read.state, read.known()) == (State.ABSENT, None)
    assert "can be listed" in str(read.reason)


SANDBOX = "e" * 64


def running(kubelet: Path, *containers: str) -> dict[str, PodOnDisk]:
    known = folders(kubelet).read([], containers, []).known()
    assert known is not None
    return {one.uid: one for one in known}


def test_a_running_container_names_its_pod_by_its_bundle_without_any_log(kubelet: Path) -> None:
    fresh = "f" * 64
    notes = {
        "container_type": "container",
        "sandbox_uid": "new",
        "sandbox_namespace": "team",
        "sandbox_name": "n",
        "container_name": "c",
    }
    bundle(kubelet, fresh, **notes)
    found = running(kubelet, fresh, "9" * 64)["new"]
    assert (found.namespace, found.name, found.sandbox_ids) == ("team", "n", ())
    assert found.containers is not None
    assert [(one.name, one.container_ids) for one in found.containers] == [("c", (fresh,))]
    assert "hunter2" not in repr(found)


def test_a_sandbox_is_told_as_one_and_is_no_container(kubelet: Path) -> None:
    bundle(kubelet, SANDBOX, container_type="sandbox", sandbox_uid=UID, sandbox_namespace="team", sandbox_name="notebook-0")
    found = running(kubelet, SANDBOX)[UID]
    assert found.sandbox_ids == (SANDBOX,)
    assert SANDBOX not in [one for container in found.containers or () for one in container.container_ids]


def test_the_container_that_runs_is_the_newest_whatever_the_logs_say(kubelet: Path) -> None:
    bundle(kubelet, OLD, container_type="container", sandbox_uid=UID, container_name="main")
    assert [one.container_ids for one in running(kubelet, OLD)[UID].containers or ()] == [(OLD, NEW)]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"annotations": {}}', '{"annotations": null}'])
def test_a_bundle_that_is_broken_or_no_pods_is_passed_over(kubelet: Path, content: str) -> None:
    bundle(kubelet, SANDBOX)
    config = kubelet / "state" / "io.containerd.runtime.v2.task" / "k8s.io" / SANDBOX / "config.json"
    config.write_text(content, encoding="utf-8")
    assert running(kubelet, SANDBOX) == {}
