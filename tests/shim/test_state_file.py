"""The state's only writer: what it writes it can read, and what it cannot read it names."""

from pathlib import Path

import pytest

from sim.node.gpusim import main
from sim.node.state import (
    GIB,
    GPU_IS_LOST,
    Accounted,
    Fault,
    MigInstance,
    ScriptedProcess,
    State,
    StateError,
    highest_version,
    ordinary_node,
    render,
)
from sim.node.state_file import folder_from, parse, read_state, write_state

EVERYTHING = ordinary_node(2).with_gpu(
    ordinary_node(2).gpus[0].uuid,
    serial="123",
    latched_utilisation=100,
    lost=GPU_IS_LOST,
    accounting=True,
    process_memory=False,
    grow_by=3,
    grow_times=2,
    mig=(MigInstance(uuid="MIG-a", gpu_instance=1, compute_instance=0, total_bytes=GIB),),
    scripted=(ScriptedProcess(kind="M", pid=5, used_bytes=None), ScriptedProcess(kind="C", pid=6, used_bytes=7, gpu_instance=1)),
    accounted=(Accounted(pid=1, running=True, gpu_percent=2, peak_bytes=3, time_ms=4, start_us=5),),
    faults=(Fault(function="nvmlDeviceGetName", error=3, times=1), Fault(function="nvmlDeviceGetUUID", delay_ms=5)),
)


@pytest.mark.parametrize("state", [ordinary_node(1), EVERYTHING, State(gpus=(), faults=highest_version("nvmlX", 2))])
def test_what_is_written_is_read_back(tmp_path: Path, state: State) -> None:
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state


def test_any_session_may_lock_memory_and_nobody_else_sees_a_half_written_state(tmp_path: Path) -> None:
    write_state(tmp_path, EVERYTHING)
    for name in (EVERYTHING.gpus[1].uuid, "MIG-a"):
        for kind in ("memory", "activity"):
            assert (tmp_path / kind / name).stat().st_mode & 0o7777 == 0o1777
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o644
    assert {path.name for path in tmp_path.iterdir()} == {"state", "memory", "activity"}


def test_a_line_that_cannot_be_understood_is_named(tmp_path: Path) -> None:
    text = render(ordinary_node(1)).replace("minor 0", "minor nought")
    with pytest.raises(StateError, match=r"here line 8: `minor` cannot be understood"):
        parse(text, "here")
    with pytest.raises(StateError, match="make it with `gpusim install`"):
        read_state(tmp_path)


def test_the_folder_is_the_one_the_library_looks_into() -> None:
    assert folder_from({"GPU_SIM_DIR": "/somewhere"}) == Path("/somewhere")
    assert folder_from({"GPU_SIM_DIR": ""}) == folder_from({}) == Path("/var/lib/gpu-sim")


def test_gpusim_changes_one_gpu_and_clears_again(tmp_path: Path) -> None:
    write_state(tmp_path, ordinary_node(2))
    second = ordinary_node(2).gpus[1].uuid
    for words in (
        ["set", "--gpu", "1", "ghost_bytes=4096", "latched_utilisation=100"],
        ["lose", "--gpu", second],
        ["fault", "nvmlDeviceGetName", "--error", "999", "--times", "2"],
    ):
        assert main(["--folder", str(tmp_path), *words]) == 0
    state = read_state(tmp_path)
    assert (state.gpus[1].ghost_bytes, state.gpus[1].latched_utilisation, state.gpus[1].lost) == (4096, 100, GPU_IS_LOST)
    assert state.gpus[0] == ordinary_node(2).gpus[0]
    assert state.faults == (Fault(function="nvmlDeviceGetName", error=999, times=2),)
    assert main(["--folder", str(tmp_path), "clear"]) == 0
    assert read_state(tmp_path) == ordinary_node(2)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["set", "ghost=1"], "`ghost` is no figure of a GPU"),
        (["set", "ghost_bytes=1GB"], "give a whole number"),
        (["set", "--gpu", "7", "ghost_bytes=1"], "no simulated GPU with index 7; there are 1"),
        (["lose", "--gpu", "GPU-x"], "no simulated GPU GPU-x"),
        (["fault", "nvmlDeviceGetName"], "a fault needs --error, --delay-ms or both"),
        (["install", "--library", "/nowhere/lib.so"], "/nowhere/lib.so is missing; build it with sim/nvml/build.sh"),
    ],
)
def test_a_wrong_order_gets_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    write_state(tmp_path, ordinary_node(1))
    assert main(["--folder", str(tmp_path), *words]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
