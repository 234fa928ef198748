"""What every test of this tier needs: root, and device nodes that open without a driver (facts 2.1)."""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from steps.adapters.procfs import ProcfsReader
from steps.contracts.ports import DeviceNode
from tests.node.children import Children

STAND_INS = {"nvidia0": os.makedev(1, 5), "nvidiactl": os.makedev(1, 7)}
"""The kernel's zero and full: they open, and the first can be mapped."""


@pytest.fixture(scope="session", autouse=True)
def root_on_linux() -> None:
    """This tier fails where it cannot run: a skipped proof would pass for a proof."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.fail("tests/node makes device nodes, namespaces and cgroups: run `make node-test` as root on Linux")


@pytest.fixture
def dev() -> Iterator[Path]:
    """A folder that stands for /dev, with the stand-ins. Not below pytest's own folder, which only root may enter."""
    folder = Path(tempfile.mkdtemp(prefix="gpu-reclaim-dev-"))
    folder.chmod(0o755)
    for name, number in STAND_INS.items():
        os.mknod(folder / name, stat.S_IFCHR | 0o666, number)
        (folder / name).chmod(0o666)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def reader(dev: Path) -> ProcfsReader:
    return ProcfsReader(dev=dev)


@pytest.fixture
def devices(reader: ProcfsReader) -> tuple[DeviceNode, ...]:
    nodes = reader.devices(()).known()
    assert nodes is not None
    return nodes


@pytest.fixture
def children() -> Iterator[Children]:
    """Starts children; whatever is left of them is killed by PID afterwards."""
    started = Children()
    yield started
    started.end()
