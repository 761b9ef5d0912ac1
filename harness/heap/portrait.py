"""A state as it was, and where two of them differ.

A portrait is a value: it can be pickled, refers to no object, and stays what it is
when the state goes on.  Two portraits are compared by walking both in parallel, breadth
first, so that the shortest paths come first; below a difference nothing is compared.
"""

import marshal
from collections import deque
from dataclasses import dataclass
from typing import Any

from harness.heap.records import Node, Records

_ABSENT = "<absent>"
_NO_EDGE: Any = object()
# A difference is one line for people: longer values are cut.
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Portrait:
    """The recorded form of a state; `differences` reads it."""

    tokens: bytes
    orders: bytes

    def records(self) -> Records:
        """The nodes of this state."""
        records = Records(marshal.loads(self.tokens))  # noqa: S302  # our own bytes
        records.read()
        return records


def differences(one: Portrait, other: Portrait, most: int = 8) -> tuple[str, ...]:
    """Where two states differ, shortest paths first, `most` of them at most.

    Each line is `registry._cache['json']: <absent> / <function as_json>`, first what
    `one` has there, then the `other`.
    """
    if one == other:
        return ()
    return _Comparison(one, other, most).run()


class _Comparison:
    def __init__(self, one: Portrait, other: Portrait, most: int) -> None:
        self.orders = (one.orders, other.orders)
        self.one = one.records()
        self.other = other.records()
        self.most = most
        self.lines: list[str] = []
        self.queue: deque[tuple[str, int, int]] = deque()
        self.there: dict[int, tuple[int, str]] = {}
        self.back: dict[int, int] = {}

    def run(self) -> tuple[str, ...]:
        self._edges("", dict(self.one.roots), dict(self.other.roots))
        for label in dict.fromkeys([*self.one.globals, *self.other.globals]):
            left = self.one.globals.get(label, _NO_EDGE)
            right = self.other.globals.get(label, _NO_EDGE)
            if left is not _NO_EDGE and right is not _NO_EDGE:
                self._edge(label, left, right)
        while self.queue and len(self.lines) < self.most:
            path, left, right = self.queue.popleft()
            self._nodes(path, self.one.nodes[left], self.other.nodes[right])
        if not self.lines:
            self._one_sided()
        if not self.lines:
            self._orders()
        return tuple(self.lines[: self.most])

    def _one_sided(self) -> None:
        """Globals that only one state reaches: mostly below another difference."""
        for label in sorted(self.one.globals.keys() ^ self.other.globals.keys()):
            left = self.one.globals.get(label, _NO_EDGE)
            self._edge(label, left, self.other.globals.get(label, _NO_EDGE))

    def _nodes(self, path: str, left: Node, right: Node) -> None:
        if left.kind == right.kind == "class":
            path = left.value
        if left.kind != right.kind or left.value != right.value:
            self._line(path, self.one.node_text(left), self.other.node_text(right))
            return
        self._edges(path, self.one.edges(left), self.other.edges(right))

    def _edges(self, path: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
        for label in dict.fromkeys([*ours, *theirs]):
            one = ours.get(label, _NO_EDGE)
            other = theirs.get(label, _NO_EDGE)
            if label.startswith("<key ") and (one is _NO_EDGE or other is _NO_EDGE):
                continue  # the value below tells it
            self._edge(f"{path}{label}", one, other)

    def _edge(self, path: str, left: Any, right: Any) -> None:
        if left is _NO_EDGE or right is _NO_EDGE:
            self._line(
                path,
                _ABSENT if left is _NO_EDGE else self.one.text(left),
                _ABSENT if right is _NO_EDGE else self.other.text(right),
            )
        elif type(left) is int and type(right) is int:
            self._pair(path, left, right)
        elif type(left) is list and type(right) is list:
            self._pair(path, left[0], right[0])
        elif type(left) is not type(right) or marshal.dumps(left, 2) != marshal.dumps(
            right, 2
        ):
            self._line(path, self.one.text(left), self.other.text(right))

    def _pair(self, path: str, left: int, right: int) -> None:
        known = self.there.get(left)
        if known is None and right not in self.back:
            self.there[left] = (right, path)
            self.back[right] = left
            self.queue.append((path, left, right))
        elif known is None or known[0] != right:
            # Each is an object met before, or a new one: what is shared differs.
            one = f"<same as {known[1]}>" if known else self.one.text(left)
            twin = self.back.get(right)
            other = (
                f"<same as {self.there[twin][1]}>"
                if twin is not None
                else self.other.text(right)
            )
            self._line(path, one, other)

    def _line(self, path: str, left: str, right: str) -> None:
        self.lines.append(f"{path}: {_short(left)} / {_short(right)}")

    def _orders(self) -> None:
        """What no form tells, or the exact one alone: orders, and what caches count."""
        for first, second in zip(
            self.one.callbacks, self.other.callbacks, strict=False
        ):
            if first != second:
                before = ", ".join(map(self.one.path, first))
                after = ", ".join(map(self.other.path, second))
                self._line("order of callbacks", before, after)
        ours, theirs = _by_number(self.orders[0]), _by_number(self.orders[1])
        for number in sorted({*ours, *theirs}):
            path = self.one.path(number)
            left, right = ours.get(number, {}), theirs.get(number, {})
            for kind in sorted({*left, *right}):
                one, other = left.get(kind), right.get(kind)
                if one != other:
                    before = _order_text(kind, one, other)
                    self._line(f"{kind} {path}", before, _order_text(kind, other, one))


def _by_number(orders: bytes) -> dict[int, dict[str, Any]]:
    """Orders by the number of their object, and by what they are called."""
    found: dict[int, dict[str, Any]] = {}
    for number, *order in marshal.loads(orders):  # noqa: S302  # our own bytes
        if type(order[0]) is int and type(order[-1]) is int:
            kind = "hits of"
        elif type(order[-1]) is int:
            kind, order = "set order of", order[0]
        else:
            kind, order = "order of", order[-1]
        found.setdefault(number, {})[kind] = order
    return found


def _order_text(kind: str, order: Any, other: Any) -> str:
    """An order as people read it; one that is not recorded is the sorted one."""
    if kind == "hits of":
        hits, misses = order or (0, 0)
        return f"{hits} hits, {misses} misses"
    if kind == "set order of":
        return ", ".join(repr(marshal.loads(each)) for each in order or ())  # noqa: S302  # our own bytes
    return ", ".join(map(repr, sorted(other) if order is None else order))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
