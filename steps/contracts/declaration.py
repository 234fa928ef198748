"""A step is declared once; flags, Argo inputs and outputs, docs and the contract test are derived from that.

One argv element for flag and value (`--node=a`), so that no value can become a flag. Every value has a pattern:
parameter values of a Workflow are foreign text (facts/hera-and-argo 3.12).
"""

import enum
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from steps.contracts.document import MAX_DOCUMENT_BYTES, Document, decode, encode
from steps.contracts.errors import BadInput, Exit
from steps.contracts.files import read_limited, write_atomically
from steps.contracts.parcel import pack, unpack_all

D = TypeVar("D", bound=Document)


class Form(enum.Enum):
    """What the value of an input may look like: a pattern, and words for the sentence that refuses it."""

    NAME = (r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", "a Kubernetes name")
    ID = (r"[A-Za-z0-9][-A-Za-z0-9._]{0,251}", "an id of letters, digits, '-', '.', '_'")
    COUNT = (r"[0-9]{1,6}", "a whole number")
    GRACE = (r"-?[0-9]{1,19}", "a whole number of seconds, as the API writes it")
    SECONDS = (r"[0-9]{1,7}(\.[0-9]{1,3})?", "seconds, for example 10 or 0.5")
    SWITCH = (r"true|false", "true or false")
    NAMES = (r"\[[-a-z0-9.\", ]*\]", 'a JSON list of names, for example ["node-a"]')
    CONTAINER_IDS = (
        r'\[("([a-z0-9-]{1,32}://[0-9a-f]{12,128})?"(,"([a-z0-9-]{1,32}://[0-9a-f]{12,128})?"){0,255})?\]',
        'a JSON list of at most 256 container ids as the API writes them, for example ["containerd://0123456789ab"]',
    )
    MOMENT = (r"([0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}Z)?", "a moment such as 2026-11-30T12:00:00Z, or nothing")
    PATH = (r"[^\x00-\x1f]{1,4096}", "a path")


@dataclass(frozen=True, slots=True)
class In:
    """One input. A PATH names a file or folder that the step reads; `artifact` says that Argo lays the file there.

    least, most: of a COUNT or of SECONDS, both included.
    """

    name: str
    help: str
    form: Form = Form.NAME
    default: str | None = None
    artifact: bool = False
    least: float = 0
    most: float = math.inf

    @property
    def words(self) -> str:
        """What a value may look like, for a person: "a whole number, from 1 to 12"."""
        words = self.form.value[1]
        if self.most < math.inf:
            return f"{words}, from {self.least:g} to {self.most:g}"
        return f"{words}, {self.least:g} or more" if self.least else words

    def admits(self, value: str) -> bool:
        """Whether a value has the form and lies within the bounds."""
        if re.fullmatch(self.form.value[0], value) is None:
            return False
        return self.form not in {Form.COUNT, Form.SECONDS} or self.least <= float(value) <= self.most


@dataclass(frozen=True, slots=True)
class Out:
    """One output, written to the path given by `--NAME-to`. parcel: compressed, because it crosses a pod border."""

    name: str
    help: str
    parcel: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    help: str
    inputs: tuple[In, ...]
    outputs: tuple[Out, ...]
    exits: tuple[Exit, ...] = (Exit.DONE, Exit.COULD_NOT, Exit.BAD_INPUT)

    def argv(self, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> list[str]:
        """Arguments of `gpu-reclaim` that run this step, flag and value in one element. Inputs left out take their default."""
        unknown = set(inputs) - {i.name for i in self.inputs} | set(outputs) - {o.name for o in self.outputs}
        missing = {i.name for i in self.inputs if i.default is None} - set(inputs) | {o.name for o in self.outputs} - set(outputs)
        if unknown or missing:
            raise ValueError(f"step {self.name}: unknown {sorted(unknown)}, missing {sorted(missing)}")
        flags = [f"--{i.name}={inputs[i.name]}" for i in self.inputs if i.name in inputs]
        return ["step", self.name, *flags, *(f"--{o.name}-to={outputs[o.name]}" for o in self.outputs)]


class Inputs:
    """The checked inputs of one run of a step, and the door for its outputs. Raises BadInput when made with a wrong value."""

    def __init__(self, step: Step, values: Mapping[str, str], targets: Mapping[str, str]) -> None:
        self._step: Final = step
        self._values: Final = {i.name: _checked(i, values.get(i.name)) for i in step.inputs}
        self._targets: Final = dict(targets)

    def text(self, name: str) -> str:
        return self._values[name]

    def count(self, name: str) -> int:
        return int(self._values[name])

    def seconds(self, name: str) -> float:
        return float(self._values[name])

    def switch(self, name: str) -> bool:
        return self._values[name] == "true"

    def names(self, name: str) -> tuple[str, ...]:
        try:
            return msgspec.json.decode(self._values[name], type=tuple[str, ...])
        except msgspec.DecodeError as error:
            raise BadInput(f"--{name}: {error}; give {Form.NAMES.value[1]}") from error

    def path(self, name: str) -> Path:
        return Path(self._values[name])

    def document(self, name: str, kind: type[D]) -> D:
        """The document in the file that input `name` points to."""
        path = self.path(name)
        return decode(read_limited(path, MAX_DOCUMENT_BYTES), kind, str(path))

    def parcels(self, name: str, kind: type[D]) -> tuple[D, ...]:
        """The documents of a fan-out, in the file that input `name` points to."""
        path = self.path(name)
        return unpack_all(read_limited(path, MAX_DOCUMENT_BYTES), kind, str(path))

    def put(self, name: str, content: Document | bytes) -> None:
        """Write output `name`, whole or not at all."""
        out = next(o for o in self._step.outputs if o.name == name)
        if isinstance(content, Document):
            content = pack(content) if out.parcel else _without_double_braces(encode(content))
        write_atomically(Path(self._targets[name]), content)


def _without_double_braces(document: bytes) -> bytes:
    """The same JSON without `{{`, which can stand in strings only: as a parameter of a Workflow it would be evaluated by the
    controller (facts/hera-and-argo 3.12), and a string may hold foreign text."""
    return document.replace(b"{{", b"{\\u007b")


def _checked(declared: In, given: str | None) -> str:
    value = declared.default if given is None else given
    if value is None or not declared.admits(value):
        shown = "nothing" if value is None else repr(value if len(value) <= 80 else value[:77] + "...")
        raise BadInput(f"--{declared.name} got {shown}; give {declared.words}: {declared.help}")
    return value


def flags_of(step: Step) -> Sequence[tuple[str, str]]:
    """(flag, help) of every input and output of the step, in order: what the CLI and the docs show."""
    return [
        *((f"--{i.name}", i.help if i.default is None else f"{i.help} (default: {i.default})") for i in step.inputs),
        *((f"--{o.name}-to", f"where to write: {o.help}") for o in step.outputs),
    ]
