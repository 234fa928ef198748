"""What is written down about the cluster in the run folder, so that another program can use or end it."""

from pathlib import Path

import msgspec

from steps.contracts.files import write_atomically
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.places import Places
from tests.cluster.lab.processes import Started


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """network: its namespace's name. owner: the program it lives for; None if it was started by hand and stays."""

    network: str
    owner: Started | None


def write_record(where: Places, record: Record) -> None:
    write_atomically(_path(where), msgspec.json.encode(record))


def read_record(where: Places) -> Record | None:
    """None if there is no cluster. Raises LabError if the file is broken."""
    path = _path(where)
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except msgspec.DecodeError as error:
        raise LabError(f"{path} is broken ({error}); end the cluster's processes by hand and delete the folder") from error


def _path(where: Places) -> Path:
    return where.run / "lab.json"
