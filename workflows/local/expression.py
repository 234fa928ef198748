"""The two small languages of a DAG task: `depends` (results of other tasks) and `when` (comparisons of words).

Both are and, or, not and brackets over atoms; only what our manifests use is known, anything else is refused.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from steps.contracts.errors import BadInput

RESULTS: Final = ("Succeeded", "Failed", "Errored", "Skipped", "Omitted", "Daemoned", "AnySucceeded", "AllFailed")
BARE_NAME_MEANS: Final = ("Succeeded", "Skipped", "Daemoned")
"""What a task's bare name stands for in `depends` (workflow/common/ancestry.go)."""

_DEPENDS_TOKEN: Final = re.compile(r"\s*(&&|\|\||!|\(|\)|[a-zA-Z0-9][-a-zA-Z0-9]*(?:\.[A-Za-z]+)?)")
_WHEN_TOKEN: Final = re.compile(r"""\s*(&&|\|\||==|!=|!|\(|\)|"[^"\\]*"|'[^'\\]*'|[A-Za-z_][A-Za-z0-9_]*)""")


@dataclass(frozen=True)
class Atom:
    """depends: (task, result, ""). when: (left, right, "==" or "!=")."""

    left: str
    right: str
    operator: str = ""


@dataclass(frozen=True)
class Node:
    """operator: `&&`, `||` or `!`."""

    operator: str
    parts: tuple["Node | Atom", ...]


def holds(node: Node | Atom, atom_holds: Callable[[Atom], bool]) -> bool:
    """The truth of an expression, given that of its atoms."""
    if isinstance(node, Atom):
        return atom_holds(node)
    if node.operator == "!":
        return not holds(node.parts[0], atom_holds)
    combine = all if node.operator == "&&" else any
    return combine(holds(part, atom_holds) for part in node.parts)


def atoms(node: Node | Atom) -> list[Atom]:
    """All atoms, in order of appearance."""
    return [node] if isinstance(node, Atom) else [atom for part in node.parts for atom in atoms(part)]


def parse_depends(text: str) -> Node | Atom:
    """`depends` with bare names spelt out. Raises BadInput for anything but known results, and, or, not, brackets."""
    return _Parser(text, _DEPENDS_TOKEN, _depends_atom).whole()


def when_holds(text: str) -> bool:
    """Whether a `when` without open tags lets the task run. Raises BadInput if it is no comparison of words."""
    return holds(_Parser(text, _WHEN_TOKEN, _when_atom).whole(), _compare)


def _compare(atom: Atom) -> bool:
    return (atom.left == atom.right) is (atom.operator == "==")


class _Parser:
    def __init__(self, text: str, token: re.Pattern[str], atom: "Callable[[_Parser], Node | Atom]") -> None:
        self._text, self._atom = text, atom
        self._tokens: list[str] = []
        position = 0
        while position < len(text.rstrip()):
            match = token.match(text, position)
            if match is None:
                raise self.error()
            self._tokens.append(match.group(1))
            position = match.end()

    def error(self) -> BadInput:
        return BadInput(f"the expression {self._text!r} is not one that the local runner knows; quote its words, use && || ! ( )")

    def take(self) -> str:
        if not self._tokens:
            raise self.error()
        return self._tokens.pop(0)

    def whole(self) -> Node | Atom:
        node = self._joined("||")
        if self._tokens:
            raise self.error()
        return node

    def _joined(self, operator: str) -> Node | Atom:
        parts = [self._operand(operator)]
        while self._tokens and self._tokens[0] == operator:
            self.take()
            parts.append(self._operand(operator))
        return parts[0] if len(parts) == 1 else Node(operator, tuple(parts))

    def _operand(self, operator: str) -> Node | Atom:
        return self._joined("&&") if operator == "||" else self._unary()

    def _unary(self) -> Node | Atom:
        if self._tokens and self._tokens[0] == "!":
            self.take()
            return Node("!", (self._unary(),))
        if self._tokens and self._tokens[0] == "(":
            self.take()
            inner = self._joined("||")
            if self.take() != ")":
                raise self.error()
            return inner
        return self._atom(self)


def _depends_atom(parser: _Parser) -> Node | Atom:
    task, dot, result = parser.take().partition(".")
    if not task[0].isalnum() or (dot and result not in RESULTS):
        raise parser.error()
    if dot:
        return Atom(task, result)
    return Node("||", tuple(Atom(task, meant) for meant in BARE_NAME_MEANS))


def _when_atom(parser: _Parser) -> Node | Atom:
    left, operator, right = parser.take(), parser.take(), parser.take()
    if operator not in ("==", "!=") or not (_is_word(left) and _is_word(right)):
        raise parser.error()
    return Atom(left.strip("\"'"), right.strip("\"'"), operator)


def _is_word(token: str) -> bool:
    """Bare true and false are booleans to the controller, and never equal to the words."""
    return token[0] in "\"'" or (token[0].isalpha() and token not in ("true", "false"))
