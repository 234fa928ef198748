"""Command lines without their secrets. Pure.

Redaction prefers too much to too little: `--max-tokens=5` loses its number, which harms nobody. It cannot know a secret
that neither its flag nor its shape betrays (`mysql -phunter2`), so what it returns is still not for everybody's eyes.
"""

import re
from collections.abc import Sequence
from typing import Final

MAX_COMMAND_CHARACTERS: Final = 256
MAX_ARGUMENT_CHARACTERS: Final = 1024
"""No more of one argument is looked at: a process may have megabytes of them, and the patterns below are not linear."""
MASK: Final = "***"

_NAME: Final = r"[\w.-]{0,48}(?:token(?!iz)|passw|passphrase|pwd|secret|key|credential|auth|cookie|bearer|signature)[\w.-]{0,48}"
"""The name of something secret. Bounded, because an unbounded beginning makes the search quadratic."""
_FLAG_ALONE: Final = re.compile(rf"-{{1,2}}{_NAME}", re.IGNORECASE)
_ASSIGNED: Final = re.compile(rf"({_NAME}[\"']?\s{{0,8}}[=:]\s{{0,8}})(\"[^\"]*\"|'[^']*'|[^\s&;,\"']+)", re.IGNORECASE)
_FLAG_INSIDE: Final = re.compile(rf"(--?{_NAME}\s{{1,8}})(\"[^\"]*\"|'[^']*'|[^\s\"'-]\S*)", re.IGNORECASE)
_WHOLE_VALUE: Final = re.compile(rf"(-{{0,2}}{_NAME}=).+", re.IGNORECASE | re.DOTALL)
_SCHEME: Final = re.compile(r"\b(bearer|basic)\s+\S+", re.IGNORECASE)
_USERINFO: Final = re.compile(r"[^\s/@:\"']{1,64}:[^\s/@\"']+@")
_KNOWN_SHAPE: Final = re.compile(r"(?:hf_|sk-|gh[opsur]_|github_pat_|glpat-|xox[abp]-|AKIA|eyJ)[\w.+/=-]{8,}")
_LONG_ID: Final = re.compile(r"\b([0-9a-f]{8})(?:(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16,})\b")


def redact_command(arguments: Sequence[str]) -> str:
    """The arguments joined by blanks, secrets replaced by `***`, cut to 256 characters.

    Hidden are: values of flags and variables whose names speak of secrets (`--token=x`, `--password x`, `HF_KEY=x`, also
    inside the text of `sh -c`), `user:password@`, values of authorization schemes, and known shapes of tokens. UUIDs and long
    hexadecimal ids keep their first 8 characters: enough to tell two apart, and 64 whole ones would not fit a node's parcel.
    """
    shown: list[str] = []
    hide_next = False
    for whole in arguments:
        argument = whole[:MAX_ARGUMENT_CHARACTERS]
        is_flag = _FLAG_ALONE.fullmatch(argument) is not None
        shown.append(MASK if hide_next and not is_flag else _redact_one(argument))
        hide_next = is_flag
        if sum(map(len, shown)) > MAX_COMMAND_CHARACTERS or len(shown) > MAX_COMMAND_CHARACTERS:
            break
    joined = " ".join(shown)
    return joined if len(joined) <= MAX_COMMAND_CHARACTERS else joined[: MAX_COMMAND_CHARACTERS - 3] + "..."


def _redact_one(argument: str) -> str:
    if whole := _WHOLE_VALUE.fullmatch(argument):
        return whole[1] + MASK
    text = _SCHEME.sub(rf"\1 {MASK}", argument)
    text = _ASSIGNED.sub(rf"\g<1>{MASK}", text)
    text = _FLAG_INSIDE.sub(rf"\g<1>{MASK}", text)
    text = _USERINFO.sub(f"{MASK}@", text)
    return _LONG_ID.sub(r"\1…", _KNOWN_SHAPE.sub(MASK, text))
