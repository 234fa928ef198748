"""Which PID 1 takes its dead away: the truth table of facts/gpu-and-linux 4.7, on real processes in PID namespaces of their own.

An orphan that ends is put below each PID 1, all at once; then it is either gone or a zombie. What `observe` says of that PID 1
is held against it.
"""

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from steps.adapters.procfs.details import process_facts
from steps.adapters.procfs.stat import parse_signals
from steps.contracts.ports import SignalHandling
from steps.node_view.reaping import reaping_of
from tests.cluster.lab.debian import install_missing

PROGRAMS = ("bash", "dash", "busybox", "tini", "dumb-init", "catatonit", "s6-svscan", "python3", "node", "unshare", "nsenter")
PACKAGES = ("tini", "dumb-init", "catatonit", "busybox", "s6")
ORPHAN_S = 0.3
SETTLED_S = 1.0
LOOP = "import time\nwhile True: time.sleep(60)"
ASYNCIO = "import asyncio\nasyncio.run(asyncio.sleep(600))"
POLLING = "import subprocess, time\nchild = subprocess.Popen(['sleep', '600'])\nwhile child.poll() is None: time.sleep(0.1)"
IDLE_NODE = "setInterval(() => {}, 60000)"
SCANNING = "mkdir -p /tmp/scan && mount -t tmpfs none /tmp/scan && exec s6-svscan /tmp/scan"
OWN_ETC = "mount -t tmpfs none /etc && mount --bind /dev/null /dev/console && echo '::respawn:/bin/sleep 600' > /etc/inittab"
"""busybox init would run this machine's own /etc/init.d/rcS; in its mount namespace there is nothing but its table."""
IGNORING = "import signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\ntime.sleep(600)"

ZOMBIES = {
    "sleep": ["sleep", "600"],
    "tail": ["tail", "-f", "/dev/null"],
    "python loop": ["python3", "-c", LOOP],
    "python asyncio": ["python3", "-c", ASYNCIO],
    "python that polls its child": ["python3", "-c", POLLING],
    "node": ["node", "-e", IDLE_NODE],
    "bash -c program": ["bash", "-c", "sleep 600"],
    "bash -lc cd and program": ["bash", "-lc", "cd / && sleep 600"],
    "bash -c exec": ["bash", "-c", "exec sleep 600"],
    "dash -c exec": ["dash", "-c", "exec sleep 600"],
    "dash in read": ["dash", "-c", "read line"],
    "busybox sh with a job": ["busybox", "sh", "-c", "sleep 601 & sleep 600"],
}
REAPED = {
    "bash with a job": ["bash", "-c", "sleep 601 & sleep 600"],
    "bash and then more": ["bash", "-c", "sleep 600; true"],
    "bash loop": ["bash", "-c", "while :; do sleep 60; done"],
    "bash trap and wait": ["bash", "-c", 'trap "exit 0" TERM; sleep 600 & wait'],
    "bash in read": ["bash", "-c", "read line"],
    "dash -c program": ["dash", "-c", "sleep 600"],
    "dash -c and": ["dash", "-c", "cd / && sleep 600"],
    "dash -c job and wait": ["dash", "-c", "sleep 600 & wait"],
    "dash loop": ["dash", "-c", "while :; do sleep 60; done"],
    "python ignoring SIGCHLD": ["python3", "-c", IGNORING],
    "tini": ["tini", "--", "sleep", "600"],
    "tini -g": ["tini", "-g", "--", "sleep", "600"],
    "dumb-init": ["dumb-init", "sleep", "600"],
    "catatonit": ["catatonit", "--", "sleep", "600"],
    "s6-svscan": ["sh", "-c", SCANNING],
}
LATER = {"busybox init": ["sh", "-c", f"{OWN_ETC} && exec busybox init"]}
"""It takes its dead away about once a second."""
NOT_TOLD_APART = {"dash in read"}
"""What the program is does not tell what it does just now."""
NON_WAITING = "import os, time\nif os.fork() == 0: os._exit(0)\ntime.sleep(600)"
STUBBORN = "tini above a parent that does not wait"


@dataclass(frozen=True, slots=True)
class Seen:
    """Of one container: PIDs of zombies below PID 1, zombies elsewhere in it, and what observe says of reaping."""

    zombies: list[int]
    other_zombies: list[int]
    told: bool | None
    words: str


@pytest.fixture(scope="module")
def table() -> Iterator[dict[str, Seen]]:
    if Path("/etc/debian_version").is_file():
        install_missing(PACKAGES)
        if shutil.which("node") is None:
            install_missing(("nodejs",))
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.fail(f"not installed: {', '.join(missing)}; install {', '.join(PACKAGES)}, nodejs and util-linux")
    rows = {**ZOMBIES, **REAPED, **LATER, STUBBORN: ["tini", "--", "python3", "-c", NON_WAITING]}
    running = {name: _contained(command) for name, command in rows.items()}
    try:
        firsts = {name: _first_of(child.pid) for name, child in running.items()}
        time.sleep(SETTLED_S)
        for first in firsts.values():
            _leave_an_orphan(first)
        time.sleep(ORPHAN_S + SETTLED_S)
        seen = {name: _seen(first) for name, first in firsts.items() if name not in LATER}
        time.sleep(2 * SETTLED_S)
        yield {**seen, **{name: _seen(firsts[name]) for name in LATER}}
    finally:
        for child in running.values():
            child.kill()
            child.wait(10)
            assert child.stdin is not None
            child.stdin.close()


def _contained(command: list[str]) -> "subprocess.Popen[bytes]":
    """With a standard input that stays open, for those that read."""
    inside = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *command]
    return subprocess.Popen(inside, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _first_of(unshare: int) -> int:
    """PID 1 of the namespace, by its PID here."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        children = _children(unshare)
        if children:
            return children[0]
        time.sleep(0.02)
    pytest.fail(f"unshare {unshare} started nothing")


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def _leave_an_orphan(first: int) -> None:
    """As the end of a `kubectl exec` does: its background child goes to PID 1, and ends a moment later."""
    command = ["nsenter", f"--target={first}", "--pid", "--mount", "dash", "-c", f"sleep {ORPHAN_S} & exit 0"]
    subprocess.run(command, check=True, timeout=10, stdin=subprocess.DEVNULL)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _seen(first: int) -> Seen:
    below = _children(first)
    deeper = [pid for child in below if _state(child) not in "Z" for pid in _children(child)]
    facts = process_facts("/proc", first, ())
    masks = parse_signals(Path(f"/proc/{first}/status").read_bytes())
    assert facts is not None
    assert masks is not None
    handling = SignalHandling(
        catches_term=bool(masks[0] & 1 << signal.SIGTERM - 1), ignores_child=bool(masks[1] & 1 << signal.SIGCHLD - 1)
    )
    told, words = reaping_of(facts, handling)
    return Seen([pid for pid in below if _state(pid) == "Z"], [pid for pid in deeper if _state(pid) == "Z"], told, words)


@pytest.mark.parametrize("name", sorted(ZOMBIES))
def test_under_this_pid_1_an_orphan_that_ends_stays_a_zombie(table: dict[str, Seen], name: str) -> None:
    assert len(table[name].zombies) == 1


@pytest.mark.parametrize("name", sorted(REAPED))
def test_under_this_pid_1_an_orphan_that_ends_is_taken_away(table: dict[str, Seen], name: str) -> None:
    assert table[name].zombies == []


def test_under_busybox_init_an_orphan_that_ends_is_taken_away_a_little_later(table: dict[str, Seen]) -> None:
    assert table["busybox init"].zombies == []


@pytest.mark.parametrize("name", sorted({*ZOMBIES, *REAPED, *LATER} - NOT_TOLD_APART))
def test_observe_says_of_it_what_happens(table: dict[str, Seen], name: str) -> None:
    assert table[name].told is (name not in ZOMBIES), table[name].words


def test_where_the_program_does_not_tell_what_it_does_just_now_observe_says_that(table: dict[str, Seen]) -> None:
    assert "dash inside its builtin `read` does not" in table["dash in read"].words


def test_no_pid_1_reaps_the_zombie_of_a_parent_that_lives(table: dict[str, Seen]) -> None:
    assert (table[STUBBORN].zombies, len(table[STUBBORN].other_zombies)) == ([], 1)
    assert table[STUBBORN].told is True
