"""NVML behind a deadline: whatever the child does, the reader answers."""

import sys
import time
from pathlib import Path

import pytest

from steps.adapters.nvml import NvmlReader
from steps.adapters.nvml.pci import pci_gpu_count
from steps.contracts.document import State, encode
from tests.unit.fake_nvml import FakeGpu, FakeNvml, read


def child_that(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_what_the_child_prints_is_the_reading(tmp_path: Path) -> None:
    expected = read(FakeNvml(FakeGpu()))
    (tmp_path / "reading.json").write_bytes(encode(expected))
    assert NvmlReader(child=("cat", str(tmp_path / "reading.json"))).read() == expected


def test_a_child_that_hangs_is_given_up_at_the_deadline() -> None:
    started = time.monotonic()
    reading = NvmlReader(0.3, ("sleep", "60")).read()
    assert (reading.gpus.state, reading.gpus.reason) == (State.ERROR, "NVML did not answer within 0.3 s")
    assert time.monotonic() - started < 10


def test_after_a_hang_the_next_look_starts_afresh(tmp_path: Path) -> None:
    expected = read(FakeNvml(FakeGpu()))
    (tmp_path / "reading.json").write_bytes(encode(expected))
    once = tmp_path / "hung"
    reader = NvmlReader(
        2.0, ("sh", "-c", f"if [ -e {once} ]; then cat {tmp_path}/reading.json; else touch {once}; exec sleep 60; fi")
    )
    assert reader.read().gpus.state is State.ERROR
    assert reader.read() == expected


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import sys; sys.exit('no luck')", "no luck"),
        ("print('{}')", "not a valid GpuReading"),
        ("pass", "not a valid GpuReading"),
    ],
)
def test_a_child_that_dies_or_babbles_is_an_error_with_a_sentence(code: str, words: str) -> None:
    gpus = NvmlReader(30, child_that(code)).read().gpus
    assert (gpus.value, gpus.state) == (None, State.ERROR)
    assert words in (gpus.reason or "")


def test_the_real_child_runs_from_anywhere_and_always_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "steps").mkdir()
    (tmp_path / "steps" / "__init__.py").write_text("raise SystemExit('the wrong package')")
    monkeypatch.chdir(tmp_path)
    gpus = NvmlReader(60).read().gpus
    assert "wrong package" not in (gpus.reason or "")
    assert gpus.state in (State.ERROR, State.MEASURED)


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
