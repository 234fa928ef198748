"""Records of local runs: what the local runner wrote, in the place of what Argo would answer."""

from pathlib import Path
from typing import Final

from steps.contracts.document import MAX_DOCUMENT_BYTES, Sample, decode
from steps.contracts.files import read_limited
from steps.contracts.run_record import RunRecord

SOURCE: Final = "local runner"


class LocalRuns:
    """Implements RunReader over `<run>.json` and `<run>/<pod>.<container>.log` below one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, run: str) -> RunRecord:
        """Raises BadInput if the run has no record there."""
        path = self._folder / f"{run}.json"
        return decode(read_limited(path, MAX_DOCUMENT_BYTES), RunRecord, str(path))

    def log(self, pod: str, container: str, limit_bytes: int) -> Sample[str]:
        """The end of one container's log; absent if no run wrote one."""
        found = sorted(self._folder.glob(f"*/{pod}.{container}.log"))
        if not found:
            return Sample.absent(f"no log of {pod}/{container} was written", SOURCE)
        with found[-1].open("rb") as file:
            file.seek(max(0, found[-1].stat().st_size - limit_bytes))
            return Sample.measured(file.read(limit_bytes).decode(errors="replace"), SOURCE)
