"""One look through a /proc, on trees that real processes cannot make on demand. The real ones are in tests/node."""

import os
from pathlib import Path

import msgspec
import pytest

from steps.contracts.document import State
from steps.contracts.errors import SourceUnavailable
from steps.contracts.node_facts import HoldVia, Scan, VisibilityLevel
from steps.contracts.ports import DeviceNode, ProcessScan
from tests.unit.fake_nvml import FakeGpu, only
from tests.unit.proc_tree import NULL_NODE, ProcTree, proc_tree, stat_line

POD = "/kubepods/burstable/pod11112222-3333-4444-5555-666677778888/" + "ab" * 32
ZERO_INODE = Path("/dev/zero").stat().st_ino
ZERO = Path("/dev/zero").stat().st_rdev
ZERO_NODE = DeviceNode(name="nvidia1", major=os.major(ZERO), minor=os.minor(ZERO), gpu_uuid="GPU-b")


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    return proc_tree(tmp_path)


def full(tree: ProcTree, *also: int) -> ProcessScan:
    return tree.reader().scan([NULL_NODE], also, Scan.FULL)


def mapping(path: str, inode: int, permissions: str = "rw-s") -> str:
    return f"7f00-7f10 {permissions} 00000000 00:05 {inode} {' ' * 20}{path}\n"


def test_a_full_look_names_holders_with_their_identity(tree: ProcTree) -> None:
    tree.process(7, stat_line(7, start=4711), [Path("/dev/null")])
    tree.process(8)
    scan = full(tree)
    assert scan.boot_id.known() == "6b1c2f6e-0000-4000-8000-000000000001"
    (process,) = scan.processes
    assert (process.pid, process.start_time_ticks, process.command.known()) == (7, 4711, "python3 train.py")
    assert [(hold.device, hold.gpu_uuid, hold.via) for hold in process.holds] == [("nvidia0", "GPU-a", HoldVia.DESCRIPTOR)]
    assert (scan.visibility.level, scan.visibility.unreadable_processes) == (VisibilityLevel.FULL, 0)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev//zero"])
def test_a_shared_mapping_is_recognised_by_the_number_of_its_node(tree: ProcTree, path: str) -> None:
    tree.process(7, maps=mapping(path, ZERO_INODE), fds=[Path("/dev/full")])
    scan = tree.reader().scan([ZERO_NODE], (), Scan.FULL)
    assert [(h.device, h.via) for p in scan.processes for h in p.holds] == [("nvidia1", HoldVia.MAPPING)]


def test_a_mapping_of_a_file_that_is_no_longer_there_goes_by_its_name(tree: ProcTree) -> None:
    tree.process(7, maps=mapping("/dev/nvidia1 (deleted)", 4711), fds=[Path("/dev/full")])
    tree.process(8, maps=mapping("/data/nvidia1x", 4711) + mapping("/dev/nvidia", 4711), fds=[Path("/dev/full")])
    scan = tree.reader().scan([ZERO_NODE], (), Scan.FULL)
    assert [p.pid for p in scan.processes] == [7]


def test_a_mapping_is_not_judged_by_another_file_that_took_its_path(tree: ProcTree) -> None:
    tree.process(7, maps=mapping("/dev/zero", ZERO_INODE + 1), fds=[Path("/dev/full")])
    assert tree.reader().scan([ZERO_NODE], (), Scan.FULL).processes == ()


def test_a_regular_file_with_a_gpus_name_is_no_device(tree: ProcTree, tmp_path: Path) -> None:
    file = tmp_path / "nvidia1"
    file.touch()
    tree.process(7, maps=mapping(str(file), file.stat().st_ino), fds=[Path("/dev/full")])
    assert tree.reader().scan([ZERO_NODE], (), Scan.FULL).processes == ()


def test_a_process_that_nvml_lists_is_told_of_and_one_that_is_gone_is_not(tree: ProcTree) -> None:
    tree.process(7)
    assert [process.pid for process in full(tree, 7, 999).processes] == [7]


def test_a_zombie_of_a_pod_is_told_of_and_a_zombie_of_the_host_is_not(tree: ProcTree) -> None:
    for pid, cgroup in ((7, f"0::{POD}\n"), (8, "0::/system.slice/cron.service\n"), (9, "1:cpu:/\n0::/\n")):
        tree.process(pid, stat_line(pid, state="Z"), [], cmdline=b"", cgroup=cgroup)
    scan = full(tree)
    assert [(process.pid, process.state, process.command.state) for process in scan.processes] == [(7, "Z", State.ABSENT)]


def test_a_zombie_leader_is_told_by_its_live_thread(tree: ProcTree) -> None:
    folder = tree.process(7, stat_line(7, state="Z", threads=2), [], cmdline=b"", cgroup="1:cpu:/\n")
    tree.task(folder / "task" / "7", stat_line(7, state="Z"), [], cmdline=b"", cgroup="1:cpu:/\n")
    tree.task(folder / "task" / "9", stat_line(9, state="D"), [Path("/dev/null")], cmdline=b"train\0", cgroup=f"1:cpu:{POD}\n")
    (process,) = full(tree).processes
    assert [(h.via, h.thread_id, h.thread_state) for h in process.holds] == [(HoldVia.THREAD, 9, "D")]
    assert (process.command.known(), process.cgroup.known()) == ("train", (f"1:cpu:{POD}",))


def test_only_lines_with_a_path_of_their_own_are_kept(tree: ProcTree) -> None:
    lines = f"5:cpu:{POD}\n4:memory:{POD}\n3:pids:/\n2:devices:/other\n0::{POD}\n"
    tree.process(7, fds=[Path("/dev/null")], cgroup=lines)
    (process,) = full(tree).processes
    assert process.cgroup.known() == (f"5:cpu:{POD}", "2:devices:/other")


def test_a_dying_process_on_v1_keeps_its_bare_root(tree: ProcTree) -> None:
    tree.process(7, fds=[Path("/dev/null")], cgroup="5:cpu:/\n4:memory:/\n")
    (process,) = full(tree).processes
    assert process.cgroup.known() == ("5:cpu:/",)


def test_without_a_proc_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="cannot be listed"):
        ProcTree(tmp_path / "nowhere").reader().scan([NULL_NODE], (), Scan.FULL)


@pytest.mark.parametrize("namespace", ["pid:[4026532000]", None])
def test_outside_the_nodes_pid_namespace_the_reader_is_blind(tmp_path: Path, namespace: str | None) -> None:
    tree = proc_tree(tmp_path, "x" if namespace is None else namespace)
    if namespace is None:
        (tree.root / "self" / "ns" / "pid").unlink()
    assert full(tree).visibility.level is VisibilityLevel.BLIND


def test_a_boot_id_that_cannot_be_read_is_an_error(tree: ProcTree) -> None:
    (tree.root / "sys" / "kernel" / "random" / "boot_id").unlink()
    assert full(tree).boot_id.state is State.ERROR


def test_a_descriptor_that_cannot_be_asked_makes_the_look_partial_and_hides_no_other(tree: ProcTree, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)  # ELOOP stands for the ENOTCONN of a dead mount
    tree.process(7, fds=[loop, Path("/dev/null")])
    scan = full(tree)
    assert [process.pid for process in scan.processes] == [7]
    assert (scan.visibility.level, scan.visibility.unreadable_processes) == (VisibilityLevel.PARTIAL, 1)
    assert "PID 7 (ELOOP)" in scan.visibility.reasons[0]


def test_a_quick_look_is_of_listed_processes_only(tree: ProcTree) -> None:
    tree.process(7, fds=[Path("/dev/null")])
    tree.process(8)
    scan = tree.reader().scan([NULL_NODE], [8], Scan.QUICK)
    assert ([p.pid for p in scan.processes], scan.sockets.state) == ([8], State.ABSENT)
    assert scan.visibility.level is VisibilityLevel.PARTIAL


def test_nodes_that_share_a_number_are_both_held(tree: ProcTree) -> None:
    twin = msgspec.structs.replace(NULL_NODE, name="nvidiactl", gpu_uuid=None)
    tree.process(7, fds=[Path("/dev/null")])
    (process,) = tree.reader().scan([NULL_NODE, twin], (), Scan.FULL).processes
    assert [hold.device for hold in process.holds] == ["nvidia0", "nvidiactl"]


def test_device_nodes_are_listed_and_joined_to_gpus_by_minor_number(tree: ProcTree, tmp_path: Path) -> None:
    dev = tmp_path / "dev"
    (dev / "nvidia-caps").mkdir(parents=True)
    for name, target in (("nvidia1", "null"), ("nvidiactl", "zero"), ("nvidia-caps/nvidia-cap1", "full"), ("sda", "null")):
        (dev / name).symlink_to(f"/dev/{target}")
    (dev / "nvidia-notes").touch()
    nodes = tree.reader(dev).devices([only(FakeGpu(uuid="GPU-b", minor=1))]).known()
    assert nodes is not None
    assert [(node.name, node.gpu_uuid) for node in nodes] == [
        ("nvidia-caps/nvidia-cap1", None),
        ("nvidia1", "GPU-b"),
        ("nvidiactl", None),
    ]
    assert os.makedev(nodes[1].major, nodes[1].minor) == Path("/dev/null").stat().st_rdev


@pytest.mark.parametrize("name", ["nvidia-frontend", "nvidia"])
def test_a_gpu_without_a_node_here_is_known_by_the_drivers_major_number(tree: ProcTree, tmp_path: Path, name: str) -> None:
    (tree.root / "devices").write_text(f"Character devices:\n  1 mem\n195 {name}\n510 nvidia-uvm\n\nBlock devices:\n  7 loop\n")
    nodes = tree.reader(tmp_path).devices([only(FakeGpu(uuid="GPU-c", minor=2))]).known()
    assert nodes == (DeviceNode(name="nvidia2", major=195, minor=2, gpu_uuid="GPU-c"),)


def test_without_driver_and_nodes_it_is_not_known_what_a_device_is(tree: ProcTree, tmp_path: Path) -> None:
    nodes = tree.reader(tmp_path).devices(())
    assert (nodes.value, nodes.state) == (None, State.ABSENT)


def test_a_walk_made_before_nvml_answered_serves_the_devices_it_then_names(tree: ProcTree) -> None:
    """The number of /dev/null as the driver's: a container may have no node of a GPU, NVML tells its minor number later."""
    tree.process(7, fds=[Path("/dev/null")])
    (tree.root / "devices").write_text(f"Character devices:\n  {NULL_NODE.major} nvidia\n")
    reader = tree.reader(tree.root)
    walk = reader.walk()
    tree.process(8, fds=[Path("/dev/null")])  # after the walk
    scan = reader.scan([NULL_NODE], (), Scan.FULL, walk)
    assert [(p.pid, [h.gpu_uuid for h in p.holds]) for p in scan.processes] == [(7, ["GPU-a"])]


def test_numbers_that_the_walk_did_not_look_for_are_looked_for_again(tree: ProcTree) -> None:
    tree.process(7, fds=[Path("/dev/null")])
    reader = tree.reader(tree.root)
    walk = reader.walk()
    assert walk.numbers == frozenset()
    assert [p.pid for p in reader.scan([NULL_NODE], (), Scan.FULL, walk).processes] == [7]


def test_a_number_that_turns_out_to_be_no_gpus_makes_no_holder(tree: ProcTree) -> None:
    tree.process(7, fds=[Path("/dev/null")])
    (tree.root / "devices").write_text(f"Character devices:\n  {NULL_NODE.major} nvidia\n")
    reader = tree.reader(tree.root)
    other = DeviceNode(name="nvidia1", major=NULL_NODE.major, minor=NULL_NODE.minor + 1, gpu_uuid="GPU-b")
    assert reader.scan([other], (), Scan.FULL, reader.walk()).processes == ()


def test_of_a_holder_whose_leader_lives_the_threads_in_d_are_told(tmp_path: Path) -> None:
    tree = proc_tree(tmp_path)
    holder = tree.process(7, stat_line(7, threads=4), [Path("/dev/null")])
    bystander = tree.process(8, stat_line(8, threads=2))
    for folder, thread, state in ((holder, 7, "S"), (holder, 9, "D"), (holder, 10, "S"), (holder, 11, "D"), (bystander, 9, "D")):
        task = folder / "task" / str(thread)
        task.mkdir()
        (task / "stat").write_text(stat_line(thread, state=state))
    told = {one.pid: one for one in tree.reader().scan([NULL_NODE], (8,), Scan.FULL).processes}
    assert (told[7].state, told[7].threads_in_d, told[8].threads_in_d) == ("S", (9, 11), ())
