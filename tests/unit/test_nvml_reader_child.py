"""NVML behind a deadline: whatever the child does, the reader answers."""

import errno
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from steps.adapters.nvml import NvmlReader
from steps.adapters.nvml.fork import start, wait
from steps.adapters.nvml.pci import pci_gpu_count
from steps.contracts.document import State, encode
from tests.unit.fake_nvml import FakeGpu, FakeNvml, read


def hang() -> bytes:
    time.sleep(60)
    return b""


def test_what_the_child_returns_is_the_reading() -> None:
    expected = read(FakeNvml(FakeGpu()))
    assert NvmlReader(ask=lambda: encode(expected)).begin()() == expected


def test_an_answer_larger_than_a_pipe_arrives_whole() -> None:
    expected = read(FakeNvml(*(FakeGpu(uuid=f"GPU-{number}", minor=number) for number in range(60))))
    assert len(encode(expected)) > 65536
    assert NvmlReader(ask=lambda: encode(expected)).begin()() == expected


def test_a_child_that_hangs_is_given_up_at_the_deadline() -> None:
    started = time.monotonic()
    reading = NvmlReader(0.3, hang).begin()()
    assert (reading.gpus.state, reading.gpus.reason) == (State.ERROR, "NVML did not answer within 0.3 s")
    assert time.monotonic() - started < 10


def test_after_a_hang_the_next_look_starts_afresh(tmp_path: Path) -> None:
    expected = read(FakeNvml(FakeGpu()))
    once = tmp_path / "hung"

    def hang_once() -> bytes:
        if once.exists():
            return encode(expected)
        once.touch()
        return hang()

    reader = NvmlReader(2.0, hang_once)
    assert reader.begin()().gpus.state is State.ERROR
    assert reader.begin()() == expected


def test_the_child_has_nothing_open_of_what_its_parent_has(tmp_path: Path) -> None:
    """A child left behind in the driver must not keep the step's outputs, logs or sockets open."""
    with (tmp_path / "lock").open("w"):
        ended = wait(start(lambda: "\n".join(open_files()).encode()), 10)
    assert ended is not None
    assert {name.split(":")[0] for name in ended.output.decode().splitlines()} == {os.devnull, "pipe"}


def open_files() -> list[str]:
    """What this process has open; the folder that is listed here is closed again before it is asked for."""
    return [str(entry.readlink()) for entry in list(Path("/proc/self/fd").iterdir()) if os.path.lexists(entry)]


def test_where_no_process_can_be_started_the_gpus_are_unknown_and_nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod at its limit of processes: the look goes on, and says what is missing."""

    def full() -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    before = open_files()
    monkeypatch.setattr(os, "fork", full)
    gpus = NvmlReader().begin()().gpus
    assert (gpus.value, gpus.state) == (None, State.ERROR)
    assert "could not be started" in (gpus.reason or "")
    assert open_files() == before


def die() -> bytes:
    os.kill(os.getpid(), signal.SIGSEGV)
    return b""


def refuse() -> bytes:
    raise SystemExit("no luck")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (die, "SIGSEGV"),
        (refuse, "no luck"),
        (lambda: b"{}", "not a valid GpuReading"),
        (lambda: b"", "not a valid GpuReading"),
    ],
)
def test_a_child_that_dies_or_babbles_is_an_error_with_a_sentence(ask: Callable[[], bytes], words: str) -> None:
    gpus = NvmlReader(30, ask).begin()().gpus
    assert (gpus.value, gpus.state) == (None, State.ERROR)
    assert words in (gpus.reason or "")


def test_the_real_child_always_answers() -> None:
    assert NvmlReader(60).begin()().gpus.state in (State.ERROR, State.MEASURED)


def bus_device(bus: Path, name: str, vendor: str, device_class: str) -> None:
    (bus / name).mkdir(parents=True)
    (bus / name / "vendor").write_text(f"{vendor}\n")
    (bus / name / "class").write_text(f"{device_class}\n")


def test_gpus_on_the_bus_are_counted_by_vendor_and_class(tmp_path: Path) -> None:
    bus_device(tmp_path, "0000:01:00.0", "0x10de", "0x030200")
    bus_device(tmp_path, "0000:01:00.1", "0x10de", "0x040300")  # its sound device
    bus_device(tmp_path, "0000:02:00.0", "0x1002", "0x030000")  # another maker's
    bus_device(tmp_path, "0000:03:00.0", "0x10de", "0x030000")
    assert pci_gpu_count(tmp_path).known() == 2


def test_a_bus_that_cannot_be_read_is_not_a_bus_without_gpus(tmp_path: Path) -> None:
    count = pci_gpu_count(tmp_path / "nowhere")
    assert (count.value, count.state) == (None, State.ABSENT)
