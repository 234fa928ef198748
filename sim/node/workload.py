#!/usr/bin/env python3
"""A GPU session that is not there: holds device memory by a lock, computes or idles, and ends as badly as it is told to.

Runs in a session's image, so: this one file, standard library only. It obeys a control file (its last word counts: idle, busy,
free, exit) and signals (SIGUSR1 idle, SIGUSR2 busy). What it holds, and how, is in docs/simulated-gpu.md.
"""

import argparse
import contextlib
import fcntl
import http.server
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Final

MIB: Final = 1 << 20
POLL_S: Final = 0.1
CONNECTION_S: Final = 3600.0
EVERYONE_MAY_READ: Final = 0o644
MODES: Final = ("idle", "busy", "free", "exit")
BAD_USAGE: Final = 2


class Lock:
    """A file of the simulated driver. It counts until the last process that shares the open file has ended or closed it."""

    def __init__(self, folder: Path, name: str, text: str = "") -> None:
        """Raises OSError. The file gets its name after it is locked, so that no reader finds it unlocked."""
        hidden = folder / f".{name}"
        self.path = folder / name
        self.descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, EVERYONE_MAY_READ)
        os.fchmod(self.descriptor, EVERYONE_MAY_READ)
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        os.pwrite(self.descriptor, text.encode(), 0)
        hidden.rename(self.path)

    def forget(self) -> None:
        """Close our descriptor; a forked process that has it, too, goes on holding the lock."""
        os.close(self.descriptor)

    def release(self) -> None:
        """Give the lock up wherever it is held, and remove the file."""
        self.path.unlink(missing_ok=True)
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        os.close(self.descriptor)


class Session:
    """What this process has of each of its GPUs."""

    def __init__(self, folder: Path, uuids: Sequence[str], *, utilisation: int, sm: int) -> None:
        self._folder, self._uuids, self._activity = folder, uuids, f"{utilisation} {sm}"
        self._token = os.urandom(6).hex()  # PIDs repeat from container to container
        self.memory: list[Lock] = []
        self.activity: list[Lock] = []

    def allocate(self, mib: int) -> None:
        """Hold so much of each GPU; 0 MiB is a context without memory of its own."""
        for uuid in self._uuids:
            self.memory.append(Lock(self._folder / "memory" / uuid, f"{mib * MIB}.C.{self._token}.{os.getpid()}"))

    def free(self) -> None:
        _release(self.memory)

    def compute(self) -> None:
        if not self.activity:
            name = f"{self._token}.{os.getpid()}"
            self.activity = [Lock(self._folder / "activity" / uuid, name, self._activity) for uuid in self._uuids]

    def rest(self) -> None:
        _release(self.activity)

    def obey(self, mode: str) -> None:
        """idle: stop computing; busy: compute; free: also give the memory back."""
        if mode == "busy":
            self.compute()
        else:
            self.rest()
        if mode == "free":
            self.free()

    def describe(self) -> dict[str, object]:
        return {"pid": os.getpid(), "gpus": list(self._uuids), "computing": bool(self.activity), "holds_memory": bool(self.memory)}


def _release(locks: list[Lock]) -> None:
    while locks:
        locks.pop().release()


class Orders:
    """The wanted mode, from the control file and from signals; the newer order counts."""

    def __init__(self, control: Path, mode: str) -> None:
        self.mode = mode
        self.terminated = False
        self._control = control
        self._seen: str | None = None
        control.parent.mkdir(parents=True, exist_ok=True)

    def read(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            words = self._control.read_text(encoding="utf-8").split()
            last = words[-1] if words else None
            if last != self._seen and last in MODES:
                self.mode = last
            self._seen = last
        return self.mode

    def listen(self, on_term: str) -> None:
        signal.signal(signal.SIGUSR1, lambda _number, _frame: self._order("idle"))
        signal.signal(signal.SIGUSR2, lambda _number, _frame: self._order("busy"))
        signal.signal(signal.SIGTERM, signal.SIG_IGN if on_term == "ignore" else self._terminate)

    def _order(self, mode: str) -> None:
        self.mode = mode

    def _terminate(self, _number: int, _frame: FrameType | None) -> None:
        self.terminated = True


def open_devices(devices: Path) -> list[int]:
    """Open the driver's nodes as CUDA does and keep them open: nvidiactl and each nvidia<number>."""
    nodes = [*devices.glob("nvidiactl"), *sorted(devices.glob("nvidia[0-9]*"))]
    return [os.open(node, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC) for node in nodes]


def leave_child(session: Session, kind: str, mib: int) -> int:
    """Fork a child that holds GPU memory and ignores SIGTERM; its PID.

    fork: shares the parent's open files, as a data loader does. setsid: the same in a session of its own. own: holds memory of its
    own beside the parent's, as an engine worker does.
    """
    child = os.fork()
    if child:
        return child
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if kind == "setsid":
        os.setsid()
    for lock in session.activity:
        lock.forget()  # it does not compute, and must not seem to after the parent's end
    if kind == "own":
        for lock in session.memory:
            lock.forget()
        session.memory.clear()
        session.allocate(mib)
    while True:
        signal.pause()


class Door(http.server.BaseHTTPRequestHandler):
    """GET answers with the session's state and keeps the connection: an open connection is what presence looks like."""

    protocol_version = "HTTP/1.1"
    timeout = CONNECTION_S
    session: Session

    def do_GET(self) -> None:
        body = json.dumps(self.session.describe()).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name for it
        """Nothing: probes every few seconds would drown the log."""


def open_door(session: Session, port: int) -> None:
    handler = type("SessionDoor", (Door,), {"session": session})
    server = http.server.ThreadingHTTPServer(("", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def run(options: argparse.Namespace) -> int:
    """Hold, compute and obey until told to end. Raises OSError if the simulated driver is not there."""
    started = time.monotonic()
    uuids = [uuid for uuid in options.uuid.split(",") if uuid]
    devices = open_devices(options.devices)
    session = Session(options.folder, uuids, utilisation=options.utilisation, sm=options.sm)
    orders = Orders(options.control, options.mode)
    orders.listen(options.on_term)
    if options.mib is not None:
        session.allocate(options.mib)
    session.obey(orders.read())
    child = None if options.child == "none" else leave_child(session, options.child, options.child_mib)
    if options.port:
        open_door(session, options.port)
    print(json.dumps({"event": "workload.ready", **session.describe(), "devices": len(devices), "child": child}), flush=True)
    while orders.read() != "exit" and not orders.terminated:
        session.obey(orders.mode)
        if options.seconds and time.monotonic() - started > options.seconds:
            break
        time.sleep(POLL_S)
    if options.on_term == "cleanup":
        _clean_up(session, child)
    return 0


def _clean_up(session: Session, child: int | None) -> None:
    if child is not None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    session.rest()
    session.free()


def parser() -> argparse.ArgumentParser:
    environment = os.environ
    made = argparse.ArgumentParser(prog="workload", description=__doc__.partition("\n")[0])
    made.add_argument("--mib", type=int, help="device memory to hold on each GPU; without it: no context at all")
    made.add_argument("--mode", choices=MODES[:3], default="idle", help="what to do at first")
    made.add_argument("--utilisation", type=int, default=95, help="percent while busy")
    made.add_argument("--sm", type=int, default=80, help="percent of SMs while busy")
    made.add_argument("--on-term", choices=("exit", "cleanup", "ignore"), default="exit", help="what SIGTERM does")
    made.add_argument("--child", choices=("none", "fork", "setsid", "own"), default="none", help="a child that holds memory, too")
    made.add_argument("--child-mib", type=int, default=256, help="what a child of kind `own` holds")
    made.add_argument("--control", type=Path, default=Path("/tmp/workload/mode"), help="file for orders")
    made.add_argument("--port", type=int, default=8080, help="HTTP port; 0: none")
    made.add_argument("--seconds", type=float, default=0, help="end after so long; 0: run until told to end")
    made.add_argument("--uuid", default=environment.get("NVIDIA_VISIBLE_DEVICES", ""), help="GPUs, as given by the device plugin")
    made.add_argument("--folder", type=Path, default=Path(environment.get("GPU_SIM_DIR") or "/var/lib/gpu-sim"))
    made.add_argument("--devices", type=Path, default=Path("/dev"), help="where the device nodes are")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return run(options)
    except OSError as error:
        print(f"workload: {error.filename}: {error.strerror}; is this pod given a simulated GPU?", file=sys.stderr)
        return BAD_USAGE


if __name__ == "__main__":
    sys.exit(main())
