"""Who a process is, and where: a PID that was given again between two looks, and cgroup paths as another namespace writes them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from steps.collect.combine import combine_processes
from steps.contracts.node_facts import ProcessFacts
from steps.contracts.ports import ProcessScan
from steps.contracts.traced import Qos
from steps.trace.cgroup import Role, parse_file
from tests.node import cgroups
from tests.node.children import Children

CHECKOUT = Path(__file__).parents[2]
REUSE = """
import os, signal, sys, time, msgspec
from pathlib import Path
from steps.adapters.procfs import ProcfsReader
from steps.contracts.node_facts import Scan
reader = ProcfsReader(dev=Path(sys.argv[1]))
def holder():
    child = os.fork()
    if child == 0:
        os.open(sys.argv[1] + "/nvidia0", os.O_RDWR)
        signal.pause()
    time.sleep(0.2)
    return child
def look():
    return reader.scan(reader.devices(()).known(), (), Scan.FULL)
first = holder()
one = look()
os.kill(first, signal.SIGKILL)
os.waitpid(first, 0)
Path("/proc/sys/kernel/ns_last_pid").write_text(str(first - 1))
second = holder()
two = look()
os.kill(second, signal.SIGKILL)
print(msgspec.json.encode({"pids": [first, second], "scans": [one, two]}).decode())
"""
"""In a PID namespace of its own, whose next PID root may choose: on the whole machine others would come in between."""


class Looks(msgspec.Struct):
    pids: list[int]
    scans: list[ProcessScan]


def test_a_pid_that_was_given_again_between_two_looks_is_another_process(dev: Path) -> None:
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", REUSE, str(dev)]
    told = subprocess.run(command, check=True, capture_output=True, timeout=60, cwd=CHECKOUT).stdout
    looks = msgspec.json.decode(told, type=Looks)
    assert looks.pids[0] == looks.pids[1]
    before, after = (_only(scan, looks.pids[0]) for scan in looks.scans)
    assert (before.name, before.state) == (after.name, after.state)
    assert before.start_time_ticks < after.start_time_ticks
    (combined,) = [one for one in combine_processes(looks.scans) if one.pid == looks.pids[0]]
    assert combined.samples_in_state == 1


def _only(scan: ProcessScan, pid: int) -> ProcessFacts:
    (found,) = [one for one in scan.processes if one.pid == pid]
    return found


READ = """
import sys, msgspec
from steps.adapters.procfs.details import process_facts
facts = process_facts("/proc", int(sys.argv[1]), ())
print(msgspec.json.encode(facts.cgroup.known()).decode())
"""
ANOTHER_POD = "kubepods/burstable/pod99999999-2222-3333-4444-555566667777/" + "cd" * 32


@pytest.fixture
def pod_process(children: Children) -> Iterator[int]:
    cgroups.make(cgroups.CONTAINER)
    (pid,) = children.start("say(os.getpid()); wait()")
    cgroups.enter(cgroups.CONTAINER, pid)
    yield pid
    children.end()
    cgroups.remove(cgroups.CONTAINER)


def read_from(cgroup: str, pid: int) -> tuple[str, ...]:
    """The cgroup lines of `pid` as a reader in a cgroup namespace rooted at `cgroup` sees them."""
    folder = cgroups.make(cgroup)
    inside = f'echo $$ > {folder}/cgroup.procs && exec unshare --cgroup "$@"'
    try:
        command = ["sh", "-c", inside, "sh", sys.executable, "-c", READ, str(pid)]
        told = subprocess.run(command, check=True, capture_output=True, timeout=60, cwd=CHECKOUT).stdout
    finally:
        cgroups.remove(cgroup)
    return msgspec.json.decode(told, type=tuple[str, ...])


@pytest.mark.parametrize(
    ("reader", "qos"),
    [("gpu-reclaim-reader", Qos.BURSTABLE), ("gpu-reclaim/reader/deep", Qos.BURSTABLE), (ANOTHER_POD, Qos.UNKNOWN)],
    ids=["beside kubepods", "deeper", "in another pod"],
)
def test_a_path_written_relative_to_the_readers_cgroup_still_names_pod_and_container(
    pod_process: int, reader: str, qos: Qos
) -> None:
    """What lies above the common part is not in the line: the level of service may be missing, and is then unknown."""
    lines = read_from(reader, pod_process)
    assert any("/.." in line for line in lines), lines
    name = parse_file(lines).name
    assert (name.pod_uid, name.container_id, name.role) == ("11112222-3333-4444-5555-666677778888", "ab" * 32, Role.CONTAINER)
    assert (name.relative, name.qos) == (True, qos)
