"""What the state file holds of a container of the termination experiment."""

import msgspec


class BoxProcess(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """pid, ppid: as the container sees them. role: init, child, worker, forked or own (a child with a context of its own)."""

    pid: int
    ppid: int
    host_pid: int
    start_time_ticks: int
    name: str
    command: str
    role: str
    state: str = "S"


class SimBox(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """pid1: bash, sleep or tini. path: of the pod's object."""

    path: str
    pid1: str
    ignores_term: bool
    prestop: bool
    wait_s: float
    next_pid: int
    processes: list[BoxProcess]
