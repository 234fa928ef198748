"""Where and with what a local run happens."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

_AS_IN_THE_IMAGE = "import sys; sys.modules['rich'] = None; from steps.cli import main; sys.exit(main())"
"""The image holds no rich; where it is installed structlog loads it, which more than doubles the start of every step."""
COMMANDS = {"gpu-reclaim": (sys.executable, "-c", _AS_IN_THE_IMAGE), "python3": (sys.executable,)}
"""What stands for a container's command; any other is refused. python3 is there for the conformance templates."""


@dataclass(frozen=True)
class Setting:
    """runs_folder: gets `<run>.json` (RunRecord, rewritten at every change) and `<run>/<pod>.<container>.log`.

    claims: folder of each volume claim. config_maps: of each ConfigMap the file for each key. environment: of every container,
    beside what the manifest says. processes: how many containers run at once.
    """

    runs_folder: Path
    claims: Mapping[str, Path]
    config_maps: Mapping[str, Mapping[str, Path]]
    environment: Mapping[str, str]
    now: Callable[[], datetime]
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict(COMMANDS))
    processes: int = 8
