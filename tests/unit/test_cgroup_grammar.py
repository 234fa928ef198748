"""The grammar of cgroup paths: every rule and table row, whole files, damaged input, and two properties."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steps.contracts.traced import Qos
from steps.trace.cgroup import CgroupName, Role, Runtime, parse_file, parse_line

ID = "9bca8d63d5fa610783847915bcff0ecac1273e5b4bed3f6fa1b07350e0135961"
INNER = "ec08435e04266c5ba381fccbb829f626d11d8ddf5f8f547263c7a2d79ab4787a"
UID = "2c48913c-b29f-11e7-9350-020968147796"
OTHER = "90d81341-92de-11e7-8cf2-507b9d4141fa"
HASH = "487a0dc6dccaeefbcfedba7a7ce1ca18"
ESCAPED = UID.replace("-", "_")
SLICE = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{ESCAPED}.slice"
CGROUPFS = f"/kubepods/burstable/pod{UID}"


def named(path: str) -> CgroupName:
    return parse_line(f"0::{path}")


def outline(name: CgroupName) -> tuple[str | None, str | None, str, str, str]:
    return (name.pod_uid, name.container_id, name.runtime.value, name.qos.value, name.role.value)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        # table 1.3, below a pod
        (f"{SLICE}/cri-containerd-{ID}.scope", (UID, ID, "containerd", "burstable", "container")),
        (f"{SLICE}/crio-{ID}.scope", (UID, ID, "cri-o", "burstable", "container")),
        (f"{SLICE}/docker-{ID}.scope", (UID, ID, "docker", "burstable", "container")),
        (f"{CGROUPFS}/{ID}", (UID, ID, "unknown", "burstable", "container")),
        (f"{CGROUPFS}/crio-{ID}", (UID, ID, "cri-o", "burstable", "container")),
        (f"{SLICE}/crio-{ID}", (UID, None, "cri-o", "burstable", "sandbox")),
        (f"{SLICE}/crio-conmon-{ID}.scope", (UID, None, "cri-o", "burstable", "monitor")),
        (f"{CGROUPFS}/crio-conmon-{ID}", (UID, None, "cri-o", "burstable", "monitor")),
        # table 1.3, without a pod
        (f"/system.slice/docker-{ID}.scope", (None, ID, "docker", "none", "container")),
        (f"/docker/{ID}", (None, ID, "docker", "none", "container")),
        (f"/../crio-{ID}.scope", (None, ID, "cri-o", "unknown", "container")),
        (f"/../cri-containerd-{ID}.scope", (None, ID, "containerd", "unknown", "container")),
        (f"/machine.slice/libpod-{ID}.scope", (None, ID, "podman", "none", "container")),
        (f"/ecs/{HASH}/{HASH}-401", (None, f"{HASH}-401", "ecs", "none", "container")),
        (f"/kata_overhead/{ID}", (None, ID, "kata", "unknown", "sandbox")),
        (f"/kubepods/kata_{ID}", (None, ID, "kata", "unknown", "sandbox")),
        # rule 3: the colon form, whatever stands in front
        (f"/a/kubepods-pod{ESCAPED}.slice:cri-containerd:{ID}", (UID, ID, "containerd", "guaranteed", "container")),
        (f"/kubepods-besteffort-pod{ESCAPED}.slice:crio:{ID}", (UID, ID, "cri-o", "besteffort", "container")),
        # rule 4: a static pod, a prefix of --cgroup-root, a slice that does not repeat its ancestry
        (f"/kubepods/burstable/pod{HASH}/{ID}", (HASH, ID, "unknown", "burstable", "container")),
        (f"/kubelet.slice/kubelet-kubepods-besteffort-pod{ESCAPED}.slice", (UID, None, "unknown", "besteffort", "pod")),
        (f"/kubepods.slice/kubepods-burstable.slice/pod{ESCAPED}.slice", (UID, None, "unknown", "burstable", "pod")),
        # rule 5: guaranteed needs the word kubepods, a relative view may have lost it
        (f"/kubepods.slice/kubepods-pod{ESCAPED}.slice", (UID, None, "unknown", "guaranteed", "pod")),
        (f"/../../pod{UID}/{ID}", (UID, ID, "unknown", "unknown", "container")),
        # rule 6: what lies deeper belongs to the container
        (f"{SLICE}/crio-{ID}.scope/container", (UID, ID, "cri-o", "burstable", "container")),
        (f"{CGROUPFS}/{ID}/my-group/worker", (UID, ID, "unknown", "burstable", "container")),
        # rule 7, and a segment below the pod that is no container
        (CGROUPFS, (UID, None, "unknown", "burstable", "pod")),
        (f"{CGROUPFS}/something", (UID, None, "unknown", "burstable", "pod")),
        # rule 8: nothing recognisable
        ("/user.slice/user-1000.slice/session-7.scope", (None, None, "unknown", "none", "none")),
        (f"/machine.slice/libpod-{HASH}", (None, None, "unknown", "none", "none")),
        (f"/x/vte-spawn-{UID}.scope", (None, None, "unknown", "none", "none")),
    ],
)
def test_a_path_names(path: str, expected: tuple[str | None, str | None, str, str, str]) -> None:
    assert outline(named(path)) == expected


def test_the_innermost_pod_wins_and_the_outer_one_is_told() -> None:
    nested = named(f"{SLICE}/cri-containerd-{ID}.scope/kubelet/kubepods/pod{OTHER}/{INNER}")
    assert outline(nested) == (OTHER, INNER, "unknown", "guaranteed", "container")
    assert nested.outer_pod_uid == UID


def test_a_pod_written_straight_into_another_ones_container_is_at_that_ones_level() -> None:
    assert named(f"{CGROUPFS}/{ID}/pod{OTHER}/{INNER}").qos is Qos.BURSTABLE


def test_an_inner_id_is_reported_apart() -> None:
    inside = named(f"{SLICE}/cri-containerd-{ID}.scope/docker/{INNER}")
    assert (inside.container_id, inside.inner_container_id) == (ID, INNER)


def test_the_id_of_a_sandbox_or_monitor_is_not_the_containers() -> None:
    assert named(f"{SLICE}/crio-{ID}").sandbox_id == ID
    assert named(f"{SLICE}/crio-conmon-{ID}.scope").sandbox_id == ID
    assert named(f"{SLICE}/kata_{ID}").sandbox_id == ID


def test_a_deleted_cgroup_keeps_its_name_and_a_flag() -> None:
    gone = named(f"{SLICE}/cri-containerd-{ID}.scope (deleted)")
    assert (gone.container_id, gone.deleted) == (ID, True)
    assert not named(f"{SLICE}/cri-containerd-{ID}.scope").deleted


def test_a_relative_path_keeps_a_flag_and_a_bare_root_is_no_host_path() -> None:
    assert named(f"/../../pod{UID}/{ID}").relative
    assert named("/").bare
    assert not named("/..").bare


@pytest.mark.parametrize("line", ["", "0", "0:", "no colon", "0:cpu", f"{SLICE}/cri-containerd-{ID}.scope"])
def test_a_line_without_two_colons_is_damaged_and_names_nothing(line: str) -> None:
    name = parse_line(line)
    assert (name.role, name.damaged) == (Role.NONE, True)


@pytest.mark.parametrize("cut", [ID[:-1], ID + "0", ID[:12], ID.upper()])
def test_a_truncated_or_foreign_id_is_no_container(cut: str) -> None:
    assert named(f"{CGROUPFS}/{cut}").container_id is None
    assert named(f"/system.slice/docker-{cut}.scope").role is Role.NONE


@pytest.mark.parametrize("cut", [UID[:-1], UID[:8], HASH[:-1], HASH + "0"])
def test_a_truncated_uid_is_no_pod(cut: str) -> None:
    assert named(f"/kubepods/pod{cut}/{ID}").pod_uid is None


# whole files


def test_one_empty_controller_is_no_veto_wherever_it_stands() -> None:
    full, empty = f"4:memory:{CGROUPFS}/{ID}", "3:rdma:/"
    for lines in ([empty, full], [full, empty], [empty, full, "1:name=systemd:/"]):
        read = parse_file(lines)
        assert (read.name.pod_uid, read.name.container_id, read.conflict) == (UID, ID, None)


def test_the_pod_may_stand_in_the_unified_line_alone() -> None:
    """Hybrid: the v1 lines read the cgroup of whoever started the process."""
    read = parse_file(["8:pids:/system.slice/containerd.service", f"0::{SLICE}/cri-containerd-{ID}.scope"])
    assert (read.name.pod_uid, read.conflict, read.host) == (UID, None, False)


def test_lines_of_both_drivers_agree_and_complete_each_other() -> None:
    read = parse_file([f"4:memory:/kubepods/pod{UID}/{ID}", f"0::{SLICE}/cri-containerd-{ID}.scope"])
    assert (read.conflict, read.name.runtime, read.name.container_id) == (None, Runtime.CONTAINERD, ID)


def test_the_level_is_taken_from_whichever_line_shows_it() -> None:
    read = parse_file([f"0::/../../pod{UID}/{ID}", f"4:memory:{CGROUPFS}/{ID}"])
    assert read.name.qos is Qos.BURSTABLE


def test_an_answer_with_a_pod_outranks_one_without() -> None:
    """kind on v1: some controllers show the docker container that is the node."""
    read = parse_file([f"9:devices:/docker/{INNER}", f"4:memory:/docker/{INNER}{CGROUPFS}/{ID}"])
    assert (read.name.pod_uid, read.name.container_id, read.conflict) == (UID, ID, None)


def test_pod_level_and_container_of_the_same_pod_are_no_conflict() -> None:
    read = parse_file([f"4:memory:{CGROUPFS}", f"5:cpu:{CGROUPFS}/{ID}"])
    assert (read.name.container_id, read.conflict) == (ID, None)


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ([f"4:memory:/kubepods/pod{UID}/{ID}", f"5:cpu:/kubepods/pod{OTHER}/{ID}"], "pods"),
        ([f"4:memory:/kubepods/pod{UID}/{ID}", f"5:cpu:/kubepods/pod{UID}/{INNER}"], "containers"),
    ],
)
def test_two_pods_or_two_containers_are_a_conflict(lines: list[str], what: str) -> None:
    conflict = parse_file(lines).conflict
    assert conflict is not None
    assert f"2 different {what}" in conflict


@pytest.mark.parametrize(
    ("lines", "host", "lost"),
    [
        (["0::/system.slice/kubelet.service"], True, False),
        (["11:devices:/system.slice/kubelet.service", "0::/"], True, False),
        (["8:pids:/", "7:cpu:/"], False, True),
        (["0::/"], False, False),
        (["0::/../.."], False, False),
        (["8:pids:/system.slice/containerd.service", "0::/../.."], False, False),
        (["no colon"], False, False),
        ([], False, False),
    ],
)
def test_nothing_named_is_a_host_process_only_if_a_line_says_where_it_is(lines: list[str], host: bool, lost: bool) -> None:
    read = parse_file(lines)
    assert (read.name.role, read.host, read.lost) == (Role.NONE, host, lost)


# properties

pieces = st.sampled_from(
    ("kubepods", "kubepods.slice", f"pod{UID}", f"kubepods-burstable-pod{ESCAPED}.slice", ID, f"crio-{ID}.scope", "..", "", ":")
) | st.sampled_from(("ecs", "docker", f"kata_{ID}", " (deleted)", "burstable", f"x.slice:crio:{ID}"))
paths = st.lists(pieces | st.text(max_size=8), max_size=8).map("/".join)


@settings(deadline=None)  # a shared machine may pause
@given(st.lists(st.text(max_size=40) | paths.map(lambda path: f"0::/{path}") | paths, max_size=4))
def test_no_text_raises(lines: list[str]) -> None:
    parse_file(lines)
    for line in lines:
        parse_line(line)


NAMED = [
    f"{SLICE}/cri-containerd-{ID}.scope",
    f"{CGROUPFS}/{ID}",
    f"/kubepods/pod{HASH}",
    f"/kubepods-besteffort-pod{ESCAPED}.slice:cri-containerd:{ID}",
    f"/docker/{ID}",
    f"/machine.slice/libpod-{ID}.scope/container",
    f"/ecs/{HASH}/{HASH}-4",
    f"/kata_overhead/{ID}",
]
parents = st.lists(
    st.sampled_from(["system.slice", f"docker-{INNER}.scope", "docker", INNER, "kubelet", "user@1000.service", "a:b", "x.slice"])
    | st.text(alphabet="abcxyz.@-", min_size=1, max_size=12).filter(lambda text: text not in (".", "..")),
    max_size=4,
)


@settings(deadline=None)
@given(st.sampled_from(NAMED), parents)
def test_unrelated_parents_in_front_do_not_change_the_answer(path: str, front: list[str]) -> None:
    prefix = "".join(f"/{parent}" for parent in front)
    assert outline(named(prefix + path)) == outline(named(path))
