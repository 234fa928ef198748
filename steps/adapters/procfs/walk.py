"""One pass over all processes: who has which device number, zombies of pods, and what could not be read.

It asks for numbers and knows nothing of GPUs, so that it can be made while NVML is still being asked.
"""

import errno
from dataclasses import dataclass, field

from steps.adapters.procfs.details import cgroup_lines, stat_of
from steps.adapters.procfs.files import GONE, numbers_in, read_if_there
from steps.adapters.procfs.holds import Wanted, by_descriptor, by_mapping, by_threads
from steps.adapters.procfs.pods import in_a_pod
from steps.contracts.errors import SourceUnavailable
from steps.contracts.node_facts import HoldVia
from steps.contracts.ports import Found, Walk


def walk(root: str, wanted: Wanted) -> Walk:
    """A process that ends while we look is left out. Raises SourceUnavailable if there is no /proc at all."""
    pass_over = _Pass(root, wanted)
    pids = _pids(root)
    for pid in pids:
        pass_over.visit(pid)
    return Walk(frozenset(wanted), pids, pass_over.found, tuple(pass_over.zombies), pass_over.unreadable)


def _pids(root: str) -> tuple[int, ...]:
    try:
        return tuple(numbers_in(root))
    except OSError as error:
        raise SourceUnavailable(f"{root} cannot be listed: {error.strerror}; run this where /proc is mounted") from error


@dataclass
class _Pass:
    root: str
    wanted: Wanted
    found: dict[int, tuple[Found, ...]] = field(default_factory=dict)
    zombies: list[int] = field(default_factory=list)
    unreadable: dict[int, str] = field(default_factory=dict)

    def visit(self, pid: int) -> None:
        process = f"{self.root}/{pid}"
        try:
            open_files = by_descriptor(process, self.wanted)
            if open_files.failed is not None:
                self._refused(pid, open_files.failed)
            if open_files.opened == 0 and self._is_zombie(pid):
                self._visit_zombie(pid)
                return
            mapped = by_mapping(process, self.wanted)
            if open_files.numbers or mapped:
                found = [Found(number, HoldVia.DESCRIPTOR) for number in sorted(open_files.numbers)]
                self.found[pid] = (*found, *(Found(number, HoldVia.MAPPING) for number in sorted(mapped - open_files.numbers)))
        except GONE:
            return
        except OSError as error:
            if self._is_zombie(pid):  # its folder belongs to root: for everybody else not even empty
                self._visit_zombie(pid)
            else:
                self._refused(pid, error)

    def _is_zombie(self, pid: int) -> bool:
        stat = stat_of(self.root, pid)
        return stat is not None and stat.is_zombie

    def _visit_zombie(self, pid: int) -> None:
        """A plain zombie holds nothing (its files were closed at exit) and matters if it is a pod's; live threads may hold."""
        stat = stat_of(self.root, pid)
        if stat is not None and stat.threads > 1:
            try:
                threads = by_threads(f"{self.root}/{pid}", pid, self.wanted)
            except GONE:
                return
            except OSError as error:
                self._refused(pid, error)
            else:
                if threads:
                    held = (Found(number, HoldVia.THREAD, one.id, one.state) for number, one in sorted(threads.items()))
                    self.found[pid] = tuple(held)
        content = read_if_there(f"{self.root}/{pid}/cgroup")
        if content is not None and in_a_pod(cgroup_lines(content)):
            self.zombies.append(pid)

    def _refused(self, pid: int, error: OSError) -> None:
        """Each process once."""
        self.unreadable[pid] = "unknown error" if error.errno is None else errno.errorcode.get(error.errno, str(error.errno))
