"""What the reader sees, and what it says when it does not."""

import subprocess
import sys
from pathlib import Path

import msgspec

from steps.adapters.procfs import ProcfsReader
from steps.contracts.node_facts import Scan, Visibility, VisibilityLevel
from steps.contracts.ports import DeviceNode
from tests.node.children import Children

OPEN = "fd = os.open(sys.argv[1], os.O_RDWR); say(os.getpid()); wait()"
READ = """
import sys, msgspec
from pathlib import Path
from steps.adapters.procfs import ProcfsReader
from steps.contracts.node_facts import Scan
reader = ProcfsReader(dev=Path(sys.argv[1]))
scan = reader.scan(reader.devices(()).known(), (), Scan.FULL)
print(msgspec.json.encode({"seen": scan.visibility, "pids": [p.pid for p in scan.processes]}).decode())
"""
CHECKOUT = Path(__file__).parents[2]


class Seen(msgspec.Struct):
    seen: Visibility
    pids: list[int]


def read_as(*before: str, dev: Path) -> Seen:
    """What the reader says when it runs with fewer rights. Raises CalledProcessError."""
    command = [*before, sys.executable, "-c", READ, str(dev)]
    output = subprocess.run(command, check=True, capture_output=True, timeout=60, cwd=CHECKOUT).stdout
    return msgspec.json.decode(output, type=Seen)


def test_root_on_the_host_sees_every_process_but_what_it_names(reader: ProcfsReader, devices: tuple[DeviceNode, ...]) -> None:
    """PID 1 of a machine can be out of reach even for root (facts 4.9); nothing else may be."""
    visibility = reader.scan(devices, (), Scan.FULL).visibility
    assert visibility.unreadable_processes <= 1
    if visibility.unreadable_processes == 1:
        assert visibility.level is VisibilityLevel.PARTIAL
        assert "PID 1 (EACCES)" in visibility.reasons[0]
    else:
        assert (visibility.level, visibility.reasons) == (VisibilityLevel.FULL, ())


def test_a_reader_without_the_right_to_trace_is_partial_and_counts_each_process_once(dev: Path, children: Children) -> None:
    (holder,) = children.start(OPEN, str(dev / "nvidia0"))
    dropped = "--bounding-set=-sys_ptrace,-dac_read_search,-dac_override"
    seen = read_as("setpriv", dropped, "--inh-caps=-all", dev=dev)
    assert holder not in seen.pids
    assert seen.seen.level is VisibilityLevel.PARTIAL
    processes = sum(1 for path in Path("/proc").iterdir() if path.name.isdecimal())
    assert 0 < seen.seen.unreadable_processes <= processes


def test_the_rights_of_the_probe_suffice(dev: Path, children: Children) -> None:
    """SYS_PTRACE and DAC_READ_SEARCH, and nothing else (design, accounts)."""
    user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    (holder,) = children.start(OPEN, str(dev / "nvidia0"), before=user)
    kept = "-all,+sys_ptrace,+dac_read_search"
    seen = read_as("setpriv", f"--bounding-set={kept}", f"--inh-caps={kept}", dev=dev)
    assert holder in seen.pids


def test_a_reader_in_another_pid_namespace_is_blind(dev: Path, children: Children) -> None:
    children.start(OPEN, str(dev / "nvidia0"))
    seen = read_as("unshare", "--pid", "--fork", "--mount-proc", dev=dev)
    assert (seen.seen.level, seen.pids) == (VisibilityLevel.BLIND, [])
    assert "hostPID" in seen.seen.reasons[0]
