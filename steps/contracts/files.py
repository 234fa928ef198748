"""Files that appear whole or not at all, and reads with a bound. The only file access beside the adapters."""

import os
import tempfile
from pathlib import Path

from steps.contracts.errors import BadInput, SourceUnavailable


def read_limited(path: Path, limit_bytes: int) -> bytes:
    """The content of a file. Raises BadInput if it cannot be read or is larger than the limit."""
    try:
        with path.open("rb") as file:
            content = file.read(limit_bytes + 1)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}; give a file that exists and is readable") from error
    if len(content) > limit_bytes:
        raise BadInput(f"{path} is larger than {limit_bytes} bytes, the limit; give the file that the step before wrote")
    return content


def is_there(path: Path) -> bool:
    """Whether there is such a file or folder. Raises SourceUnavailable where that may not be known: no right is not nothing."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise SourceUnavailable(f"{path} cannot be looked at: {error.strerror}; give a folder that is readable") from error
    return True


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary file beside the target, flush it to disk, rename. A kill leaves the old file or the new one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise SourceUnavailable(f"{path} cannot be written: {error.strerror}; give a folder that is writable") from error
