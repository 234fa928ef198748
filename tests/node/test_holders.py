"""Every shape of a holder, made for real and found by the reader."""

import os
import signal
import stat
import time
from pathlib import Path

import pytest

from steps.adapters.procfs import ProcfsReader
from steps.contracts.document import State
from steps.contracts.node_facts import HoldVia, ProcessFacts, Scan, VisibilityLevel
from steps.contracts.ports import DeviceNode
from tests.node.children import Children

Devices = tuple[DeviceNode, ...]
OPEN = "fd = os.open(sys.argv[1], os.O_RDWR)\n"


def found(reader: ProcfsReader, devices: Devices, pid: int, *also: int) -> ProcessFacts | None:
    scan = reader.scan(devices, also, Scan.FULL)
    return next((process for process in scan.processes if process.pid == pid), None)


def held(process: ProcessFacts | None) -> list[tuple[str, HoldVia]]:
    return [] if process is None else [(hold.device, hold.via) for hold in process.holds]


def test_an_open_descriptor_is_found(reader: ProcfsReader, devices: Devices, dev: Path, children: Children) -> None:
    (pid,) = children.start(OPEN + "say(os.getpid()); wait()", str(dev / "nvidia0"))
    process = found(reader, devices, pid)
    assert held(process) == [("nvidia0", HoldVia.DESCRIPTOR)]
    assert process is not None
    assert (process.pid, process.state, process.threads, process.kill_pending) == (pid, "S", 1, False)
    assert (process.executable.known() or "").endswith(("python3", "python3.11", "python3.12", "python3.13"))


def test_both_nodes_of_one_process_are_found_once_each(
    reader: ProcfsReader, devices: Devices, dev: Path, children: Children
) -> None:
    code = "fds = [os.open(sys.argv[1] + name, 2) for name in ('/nvidia0', '/nvidia0', '/nvidiactl')]; say(os.getpid()); wait()"
    (pid,) = children.start(code, str(dev))
    assert held(found(reader, devices, pid)) == [("nvidia0", HoldVia.DESCRIPTOR), ("nvidiactl", HoldVia.DESCRIPTOR)]


def test_a_node_made_inside_a_container_is_another_inode_and_still_found(
    reader: ProcfsReader, devices: Devices, tmp_path: Path, children: Children
) -> None:
    os.mknod(tmp_path / "gpu", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    (pid,) = children.start(OPEN + "os.unlink(sys.argv[1]); say(os.getpid()); wait()", str(tmp_path / "gpu"))
    assert held(found(reader, devices, pid)) == [("nvidia0", HoldVia.DESCRIPTOR)]


MAP = (
    OPEN
    + """
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
assert libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_PRIVATE, fd, 0) != 2**64 - 1
os.close(fd)
"""
)
"""By libc, because Python's mmap keeps a descriptor of its own. Private, because a shared mapping of the kernel's zero is
moved to a file of another name; a driver's is not, and the unit tests have that form."""


def test_a_mapping_whose_descriptor_is_closed_is_found(
    reader: ProcfsReader, devices: Devices, dev: Path, children: Children
) -> None:
    (pid,) = children.start(MAP + "say(os.getpid()); wait()", str(dev / "nvidia0"))
    assert held(found(reader, devices, pid)) == [("nvidia0", HoldVia.MAPPING)]


@pytest.mark.parametrize("name", ["nvidia0", "nvidia-of-mine"])
def test_a_mapping_of_a_node_made_elsewhere_is_found_by_its_number(
    name: str, reader: ProcfsReader, devices: Devices, tmp_path: Path, children: Children
) -> None:
    os.mknod(tmp_path / name, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    (pid,) = children.start(MAP + "say(os.getpid()); wait()", str(tmp_path / name))
    assert held(found(reader, devices, pid)) == [("nvidia0", HoldVia.MAPPING)]


def test_a_mapping_of_another_device_with_a_gpus_name_is_none(
    reader: ProcfsReader, dev: Path, tmp_path: Path, children: Children
) -> None:
    """The other way round: the number decides, not the name."""
    os.mknod(tmp_path / "nvidia0", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    (pid,) = children.start(MAP + "say(os.getpid()); wait()", str(tmp_path / "nvidia0"))
    other = DeviceNode(name="nvidia0", major=1, minor=7, gpu_uuid=None)
    assert found(reader, (other,), pid) is None


def test_a_mapping_whose_node_was_removed_is_found_by_its_name(
    reader: ProcfsReader, devices: Devices, tmp_path: Path, children: Children
) -> None:
    os.mknod(tmp_path / "nvidia0", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    (pid,) = children.start(MAP + "os.unlink(sys.argv[1]); say(os.getpid()); wait()", str(tmp_path / "nvidia0"))
    assert held(found(reader, devices, pid)) == [("nvidia0", HoldVia.MAPPING)]


def test_a_mapping_in_another_mount_namespace_is_found(reader: ProcfsReader, devices: Devices, children: Children) -> None:
    code = """
os.system("mount -t tmpfs -o dev none /mnt && mknod /mnt/nvidia0 c 1 5")
sys.argv[1] = "/mnt/nvidia0"
"""
    (pid,) = children.start(code + MAP + "say(os.getpid()); wait()", "", before=("unshare", "--mount"))
    assert not Path("/mnt/nvidia0").exists()
    assert held(found(reader, devices, pid)) == [("nvidia0", HoldVia.MAPPING)]


ZOMBIE_LEADER = """
def hold():
    fd = os.open(sys.argv[1], os.O_RDWR)
    say(os.getpid(), threading.get_native_id())
    wait()
threading.Thread(target=hold, daemon=True).start()
time.sleep(0.3)
ctypes.CDLL(None).syscall(60, 0)
"""


def until_zombie(pid: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.02)
    pytest.fail(f"PID {pid} did not become a zombie")


def test_a_zombie_leader_with_a_live_thread_is_found_by_that_thread(
    reader: ProcfsReader, devices: Devices, dev: Path, children: Children
) -> None:
    pid, thread = children.start(ZOMBIE_LEADER, str(dev / "nvidia0"))
    until_zombie(pid)
    assert list(Path(f"/proc/{pid}/fd").iterdir()) == []
    process = found(reader, devices, pid)
    assert process is not None
    (hold,) = process.holds
    assert (hold.device, hold.via, hold.thread_id, hold.thread_state) == ("nvidia0", HoldVia.THREAD, thread, "S")
    assert (process.state, process.threads, process.executable.state, process.command.state) == (
        "Z",
        2,
        State.MEASURED,
        State.MEASURED,
    )
    assert process.cgroup.known()


def test_a_zombie_leader_whose_thread_only_maps_is_found(
    reader: ProcfsReader, devices: Devices, dev: Path, children: Children
) -> None:
    code = MAP + "sys.argv[1] = '/dev/null'\n" + ZOMBIE_LEADER
    pid, thread = children.start(code, str(dev / "nvidia0"))
    until_zombie(pid)
    process = found(reader, devices, pid)
    assert process is not None
    assert [(hold.device, hold.thread_id) for hold in process.holds] == [("nvidia0", thread)]


def test_a_plain_zombie_holds_nothing_even_if_nvml_lists_it(
    reader: ProcfsReader, devices: Devices, dev: Path, children: Children
) -> None:
    code = """
child = os.fork()
if child == 0:
    os.open(sys.argv[1], os.O_RDWR)
    os._exit(0)
time.sleep(0.2)
say(os.getpid(), child); wait()
"""
    _, zombie = children.start(code, str(dev / "nvidia0"))
    until_zombie(zombie)
    process = found(reader, devices, zombie, zombie)
    assert process is not None
    assert (process.state, process.holds, process.command.state, process.executable.state) == (
        "Z",
        (),
        State.ABSENT,
        State.ABSENT,
    )
    assert found(reader, devices, zombie) is None


FORK = (
    OPEN
    + """
child = os.fork()
if child == 0:
    CHILD
    say(os.getppid(), os.getpid())
    wait()
time.sleep(600)
"""
)


def test_a_forked_child_keeps_the_device_after_its_parent_was_killed(
    reader: ProcfsReader, devices: Devices, dev: Path, children: Children
) -> None:
    parent, child = children.start(FORK.replace("CHILD", "pass"), str(dev / "nvidia0"), before=("setsid",))
    process = found(reader, devices, child)
    assert process is not None
    assert process.adopted.known() is False
    os.kill(parent, signal.SIGKILL)
    until_gone_or_zombie(parent)
    process = found(reader, devices, child)
    assert process is not None
    assert (held(process), process.adopted.known()) == ([("nvidia0", HoldVia.DESCRIPTOR)], True)


def until_gone_or_zombie(pid: int) -> None:
    if Path(f"/proc/{pid}").exists():
        until_zombie(pid)


def test_a_child_that_renamed_itself_and_left_its_session_is_found_under_its_new_name(
    reader: ProcfsReader, devices: Devices, dev: Path, children: Children
) -> None:
    disguise = "os.setsid(); ctypes.CDLL(None).prctl(15, b'a) Z 1 (b x', 0, 0, 0)"
    parent, child = children.start(FORK.replace("CHILD", disguise), str(dev / "nvidia0"))
    os.kill(parent, signal.SIGKILL)
    process = found(reader, devices, child)
    assert process is not None
    assert (process.name, process.state, process.session_id) == ("a) Z 1 (b x", "S", child)
    assert held(process) == [("nvidia0", HoldVia.DESCRIPTOR)]


def test_a_descriptor_in_flight_is_in_nobodys_table(reader: ProcfsReader, devices: Devices, dev: Path, children: Children) -> None:
    """A limit, not a wish: only the memory that nobody explains tells of it (facts 4.2)."""
    code = OPEN + "a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [fd]); os.close(fd); say(os.getpid()); wait()"
    (pid,) = children.start(code, str(dev / "nvidia0"))
    assert found(reader, devices, pid) is None


def test_a_process_that_holds_nothing_is_told_only_if_nvml_lists_it(
    reader: ProcfsReader, devices: Devices, children: Children
) -> None:
    (pid,) = children.start("say(os.getpid()); wait()")
    assert found(reader, devices, pid) is None
    process = found(reader, devices, pid, pid, 4_194_303)
    assert process is not None
    assert process.holds == ()


def test_a_quick_scan_looks_up_what_nvml_lists_and_says_that_it_is_quick(
    reader: ProcfsReader, devices: Devices, dev: Path, children: Children
) -> None:
    (holder,) = children.start(OPEN + "say(os.getpid()); wait()", str(dev / "nvidia0"))
    (listed,) = children.start("say(os.getpid()); wait()")
    scan = reader.scan(devices, [listed], Scan.QUICK)
    assert [process.pid for process in scan.processes] == [listed]
    assert holder not in {process.pid for process in scan.processes}
    assert (scan.sockets.state, scan.visibility.level) == (State.ABSENT, VisibilityLevel.PARTIAL)


def test_secrets_of_a_command_line_do_not_leave_the_node(
    reader: ProcfsReader, devices: Devices, dev: Path, children: Children
) -> None:
    (pid,) = children.start(OPEN + "say(os.getpid()); wait()", str(dev / "nvidia0"), "--token=hunter2", "--password", "hunter3")
    process = found(reader, devices, pid)
    assert process is not None
    assert "hunter" not in (process.command.known() or "hunter")


def test_the_pid_inside_its_own_namespace_is_told(reader: ProcfsReader, devices: Devices, dev: Path, children: Children) -> None:
    code = OPEN + "say(os.readlink('/proc/self')); wait()"  # /proc is still the host's, so this is the PID out here
    (pid,) = children.start(code, str(dev / "nvidia0"), before=("unshare", "--pid", "--fork", "--kill-child"))
    process = found(reader, devices, pid)
    assert process is not None
    assert (process.pid, process.pid_in_container) == (pid, 1)
