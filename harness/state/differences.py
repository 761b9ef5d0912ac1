"""Where two states differ: two portraits are compared path by path.

Both are walked in parallel, breadth first, so that the shortest paths are first; below
a difference nothing is compared.  Paths of the registry, and of the user's modules, are
ranked before those of the standard library.
"""

import marshal
import re
import sys
from collections import deque
from itertools import chain, takewhile
from typing import Any

from everyorder.harness.state.decode import INSTANCES, ObjectNode, Portrait, nan_bits

_ABSENT = "<absent>"
_NO_EDGE: Any = object()
# A difference is one line for people: longer values are cut.
_LONGEST = 120
# Length of the common context that is shown of two long values before they differ.
_CONTEXT = 20
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_QUOTE = re.compile(r"""\bb?['"]|['"]""")
# The words before a path of which only an order, or the hits of a cache, differ.
_KIND = re.compile("(hits|set order|order) of ")
_NAME = re.compile(r"\w*")


def differences(one: Portrait, other: Portrait, most: int = 8) -> tuple[str, ...]:
    """Return where two states differ, at most `most` lines.

    The registry's own paths are first, the shortest ones before longer ones; paths of
    the standard library are last.

    Each line is `registry._cache['json']: <absent> / <function as_json>`, first the
    value in `one`, then the value in `other`.
    """
    if one == other and one.variants == other.variants:
        return ()
    return _FormComparison(one, other, most).run()


# Lines of a walk, most of them about caches of the standard library.
_MOST_LINES = 400


def _is_of_library(line: str) -> bool:
    """Return True if the path of a line is one of the standard library.

    A cache there is filled by whatever asks first: it is mostly a trace of the two
    histories, and not the variable to fix.
    """
    path = _KIND.sub("", line.partition(": ")[0])
    return _NAME.match(path)[0] in sys.stdlib_module_names  # type: ignore[index]  # it matches ""


class _FormComparison:
    def __init__(self, one: Portrait, other: Portrait, most: int) -> None:
        self.orders = tuple(map(_by_number, (one, other)))
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
        while self.queue and self._own_lines() < self.most:
            path, left, right = self.queue.popleft()
            self._nodes(path, self.one.nodes[left], self.other.nodes[right])
        if not self.lines:
            self._one_sided()
        if not self.lines:
            self._orders()
        # Stable: paths of one rank remain in breadth-first order.
        return tuple(sorted(self.lines, key=_is_of_library)[: self.most])

    def _own_lines(self) -> int:
        """Return the number of lines that no path of the standard library can precede.

        A walk that compares a whole state ends at `_MOST_LINES`.
        """
        if len(self.lines) >= _MOST_LINES:
            return self.most
        return sum(not _is_of_library(line) for line in self.lines)

    def _one_sided(self) -> None:
        """Compare globals that one state reaches: mostly below another difference."""
        for label in sorted(self.one.globals.keys() ^ self.other.globals.keys()):
            left = self.one.globals.get(label, _NO_EDGE)
            self._edge(label, left, self.other.globals.get(label, _NO_EDGE))

    def _nodes(self, path: str, left: ObjectNode, right: ObjectNode) -> None:
        if left.kind == right.kind == "class":
            path = left.value
        if left.kind != right.kind or left.value != right.value:
            self._line(path, self.one.node_text(left), self.other.node_text(right))
            return
        if left.kind in INSTANCES and nan_bits(left) != nan_bits(right):
            one, other = self.one.node_text(left), self.other.node_text(right)
            bits = " with other bits" if one == other else ""
            self._line(path, one, other + bits)
            return
        self._edges(path, self.one.edges(left), self.other.edges(right))

    def _edges(self, path: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
        for label in dict.fromkeys([*ours, *theirs]):
            one = ours.get(label, _NO_EDGE)
            other = theirs.get(label, _NO_EDGE)
            if label.startswith("<key ") and (one is _NO_EDGE or other is _NO_EDGE):
                continue  # the value below it is reported
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
        partner = self.there.get(left)
        if partner is None and right not in self.back:
            self.there[left] = (right, path)
            self.back[right] = left
            self.queue.append((path, left, right))
        elif partner is None or partner[0] != right:
            # Each is an object met before, or a new one: the sharing differs.
            one, other = self.one.text(left), self.other.text(right)
            twin = self.back.get(right)
            is_nan = nan_bits(self.one.nodes[left]) and nan_bits(
                self.other.nodes[right]
            )
            another = "another " if is_nan else ""
            one = f"<same as {partner[1]}>" if partner else f"{another}{one}"
            other = (
                f"<same as {self.there[twin][1]}>"
                if twin is not None
                else f"{another}{other}"
            )
            self._line(path, one, other)

    def _line(self, path: str, left: str, right: str) -> None:
        begin = _beginning(left, right)
        one, other = _short(left, begin), _short(right, begin)
        self.lines.append(f"{path}: {one} / {other}")

    def _orders(self) -> None:
        """Compare orders and hits of caches: in no form, or only in the exact one."""
        for first, second in zip(
            self.one.callbacks, self.other.callbacks, strict=False
        ):
            if first != second:
                before = ", ".join(map(self.one.path, first))
                after = ", ".join(map(self.other.path, second))
                self._line("order of callbacks", before, after)
        ours, theirs = self.orders
        for number in sorted({*ours, *theirs}):
            path = self.one.path(number)
            left, right = ours.get(number, {}), theirs.get(number, {})
            for kind in sorted({*left, *right}):
                one, other = left.get(kind), right.get(kind)
                if one != other:
                    before = _order_text(kind, one, other)
                    self._line(f"{kind} {path}", before, _order_text(kind, other, one))


def _by_number(portrait: Portrait) -> dict[int, dict[str, Any]]:
    """Return orders by the number of their object, and by their kind."""
    numbered: dict[int, dict[str, Any]] = {}
    orders = map(marshal.loads, (portrait.orders, portrait.variants))
    for number, *order in chain.from_iterable(orders):
        if type(order[0]) is int and type(order[-1]) is int:
            kind = "hits of"
        elif type(order[-1]) is int:
            kind, order = "set order of", order[0]
        else:
            kind, order = "order of", order[-1]
        numbered.setdefault(number, {})[kind] = order
    return numbered


def _order_text(kind: str, order: Any, other: Any) -> str:
    """Return an order as text for people; an unrecorded one is the sorted one."""
    if kind == "hits of":
        hits, misses = order or (0, 0)
        return f"{hits} hits, {misses} misses"
    if kind == "set order of":
        return ", ".join(repr(marshal.loads(each)) for each in order or ())  # noqa: S302  # our own bytes
    return ", ".join(map(repr, sorted(other) if order is None else order))


def _beginning(left: str, right: str) -> int:
    """Return where to begin the text, so that the difference is not cut off."""
    pairs = zip(left, right, strict=False)
    same = sum(1 for _ in takewhile(lambda two: two[0] == two[1], pairs))
    if same < _LONGEST - 3 or left == right:
        return 0
    comma = left.rfind(", ", same - _CONTEXT, same)
    return comma + 2 if comma >= 0 and not _quote(left[:comma]) else same - _CONTEXT


def _quote(beginning: str) -> str:
    """Return the quote that is open at the end of `beginning`, or ""."""
    quote = _QUOTE.search(_QUOTED.sub("", beginning))
    return quote[0] if quote else ""


def _short(text: str, begin: int) -> str:
    text = f"{_quote(text[:begin])}...{text[begin:]}" if begin else text
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
