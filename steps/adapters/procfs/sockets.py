"""Connections held into the network namespaces of pods, read through any process of each; no nsenter, no tool in the image."""
# Paths are strings in here: they are made thousands of times a look, and a Path costs as much as the call.
# ruff: noqa: PTH115

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from steps.adapters.procfs.details import cgroup_lines
from steps.adapters.procfs.files import GONE, open_directory, read, read_if_there
from steps.adapters.procfs.pods import in_a_pod
from steps.adapters.procfs.tcp import Row, accepted, client_inode, none_in_use, parse_rows
from steps.contracts.document import Sample
from steps.contracts.node_facts import SocketFacts

MAX_TRIES: Final = 16
"""Processes of one namespace that are asked whose it is."""
TABLES: Final = {"tcp": "sockstat", "tcp6": "sockstat6"}
"""Each with the file that counts its sockets: to print a table the kernel walks the whole machine's, 2 ms even for none."""


def pod_connections(root: str, pids: Iterable[int]) -> Sample[tuple[SocketFacts, ...]]:
    """One entry for each network namespace, other than the host's, that a process of a pod lives in.

    Pods on the host's network have no entry: their connections cannot be told from the host's. Error, if it cannot be known
    which namespace is the host's.
    """
    spaces = _namespaces(root, pids)
    host = _host_namespace(root)
    if host is None:
        return Sample.error("the host's own network namespace cannot be told: ns/net of PID 1 and PID 2 are not readable")
    found = (_space_facts(root, name, members) for name, members in sorted(spaces.items()) if name != host)
    return Sample.measured(tuple(facts for facts in found if facts is not None))


def _namespaces(root: str, pids: Iterable[int]) -> Mapping[str, list[int]]:
    """Network namespace, as `net:[inode]` -> its processes. Zombies and unreadable processes have none."""
    spaces: dict[str, list[int]] = {}
    for pid in pids:
        name = _namespace(root, pid)
        if name is not None:
            spaces.setdefault(name, []).append(pid)
    return spaces


def _namespace(root: str, pid: int) -> str | None:
    """By the link's own text: half of what following it costs."""
    try:
        return os.readlink(f"{root}/{pid}/ns/net")
    except OSError:
        return None


def _host_namespace(root: str) -> str | None:
    """That of PID 1; of the kernel's own thread PID 2 where PID 1 is not readable (facts 4.9)."""
    return next((name for pid in (1, 2) if (name := _namespace(root, pid)) is not None), None)


def _space_facts(root: str, name: str, members: Sequence[int]) -> SocketFacts | None:
    """None: no process in there is a pod's."""
    for pid in members[:MAX_TRIES]:
        content = read_if_there(f"{root}/{pid}/cgroup")
        if content is not None and in_a_pod(lines := cgroup_lines(content)):
            return SocketFacts(
                network_namespace=name.removeprefix("net:[").removesuffix("]"),
                cgroup=lines,
                established=_established(root, pid, members),
            )
    return None


def _established(root: str, pid: int, members: Sequence[int]) -> Sample[int]:
    rows: list[Row] = []
    for table, counts in TABLES.items():
        if none_in_use(read_if_there(f"{root}/{pid}/net/{counts}")):
            continue
        try:
            rows.extend(parse_rows(read(f"{root}/{pid}/net/{table}")))
        except GONE:
            if table == "tcp":
                return Sample.error("the process whose table was read has ended")
        except OSError as error:
            return Sample.error(f"net/{table} cannot be read: {error.strerror}")
    into = accepted(rows)
    clients = [inode for row in into if (inode := client_inode(row, rows)) is not None]
    own = _socket_inodes(root, members) if clients else set()
    return Sample.measured(len(into) - sum(1 for inode in clients if inode in own))


def _socket_inodes(root: str, members: Sequence[int]) -> set[int]:
    """Sockets that processes of this namespace have open.

    A connection with both ends in here, and the client's end held by one of them, is the pod talking to itself. If none of
    them holds it, somebody reaches in: `kubectl port-forward` dials 127.0.0.1 in here from a process of the host
    (facts/session-tools 4). What cannot be read counts as somebody.
    """
    inodes: set[int] = set()
    for pid in members:
        try:
            with open_directory(f"{root}/{pid}/fd") as folder:
                inodes.update(_inodes(folder))
        except OSError:
            continue
    return inodes


def _inodes(folder: int) -> Iterable[int]:
    for name in os.listdir(folder):
        try:
            yield os.stat(name, dir_fd=folder).st_ino
        except OSError:
            continue
