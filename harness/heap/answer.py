"""Answers as values: exact types and order, never `==`, never by reference.

An answer is recorded at once, because it may be a live object that goes on changing.
`True`, `1` and `1.0` are three answers, and so are dicts of different order.

How it works: lists, tuples, dicts and sets are values all through, compared by what is
in them, not by which are the same object, and so are objects that nobody can change
(numbers, dates, paths, members of enumerations, frozen data).  Whatever else is in them
is told by its canonical form and by which ones are the same.  The registry itself, to
which an answer may lead back, is no more than that: what is in it is its state, not
its answer.  The digest is compared, the text
is for people: `text.py` writes it.
"""

import hashlib
import marshal
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any
from uuid import UUID

from harness.heap.heap import Heap, quiet
from harness.heap.layout import mro_of, namespace_of
from harness.heap.scope import Scope
from harness.heap.text import text_of
from harness.heap.tokens import ATOM_IDS

_SETS = frozenset({id(set), id(frozenset)})
_CONTAINERS = _SETS | {id(list), id(tuple), id(dict)}
# They and what is derived from them.
_VALUES = frozenset(
    map(
        id,
        (
            *(int, str, float, complex, bytes, tuple, frozenset, range, re.Pattern),
            *(date, time, timedelta, tzinfo, Decimal, Fraction, Enum, PurePath, UUID),
        ),
    )
)
_DATACLASS = type(vars(dataclass(type("_", (), {})))["__dataclass_params__"])
_ATOMS = ATOM_IDS | {id(int)}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as a value: a text for people, and a digest of its exact form."""

    text: str
    digest: bytes

    def __str__(self) -> str:
        return self.text


def canonical(
    value: object,
    *,
    unordered: bool = False,
    scope: Scope | None = None,
    registry: object = None,
) -> Hashable:
    """An answer that can be kept and compared; a plain text is its own.

    With `unordered`, the order of dicts, lists and tuples does not count.  What is in
    `registry` does not, either.
    """
    if type(value) is str:
        return value
    with quiet():
        digest = _Digest(unordered, Heap(scope or Scope(), registry)).of(value)
        return Answer(text_of(value, unordered, registry), digest)


class _Cycle(Exception):
    """A container holds itself."""


class _Digest:
    """Digests of values, bottom up; one for each answer."""

    def __init__(self, unordered: bool, heap: Heap) -> None:
        self.unordered = unordered
        self.heap = heap
        self.numbers: dict[int, int] = {}
        self.known: dict[tuple[int, bool], bytes] = {}

    def of(self, value: Any) -> bytes:
        try:
            return self._of(value)
        except _Cycle:
            form = self.heap.form({"": value})
            return form.blind if self.unordered else form.exact

    def _of(self, root: Any) -> bytes:
        """Iterative: a container is pushed twice, before and after its contents."""
        numbered = not self.unordered
        pending: list[tuple[Any, bool, bool]] = [(root, numbered, False)]
        open_: set[tuple[int, bool]] = set()
        while pending:
            value, numbered, complete = pending.pop()
            kind = type(value)
            key = (id(value), numbered)
            if id(kind) not in _CONTAINERS or key in self.known:
                continue
            if complete:
                open_.discard(key)
                self.known[key] = self._container(value, kind, numbered)
                continue
            if key in open_:
                raise _Cycle
            open_.add(key)
            pending.append((value, numbered, True))
            inner = numbered and id(kind) not in _SETS
            pending += [(each, inner, False) for each in reversed(_contents(value))]
        return self._token(root, not self.unordered)

    def _token(self, value: Any, numbered: bool) -> bytes:
        kind = type(value)
        if id(kind) in _ATOMS:
            return marshal.dumps((kind.__name__, value), 2)
        if id(kind) in _CONTAINERS:
            return self.known[id(value), numbered]
        digest = self.known.get((id(value), False))
        if digest is None:
            form = self.heap.form({"": value})
            digest = form.blind if self.unordered else form.exact
            self.known[id(value), False] = digest
        if not numbered or _is_value(kind):
            return b"object" + digest
        number = self.numbers.setdefault(id(value), len(self.numbers))
        return b"object%d " % number + digest

    def _container(self, value: Any, kind: type, numbered: bool) -> bytes:
        inner = numbered and id(kind) not in _SETS
        if kind is dict:
            parts = [
                marshal.dumps((self._token(key, inner), self._token(each, inner)), 2)
                for key, each in value.items()
            ]
        else:
            parts = [self._token(each, inner) for each in value]
        if self.unordered or id(kind) in _SETS:
            parts.sort()
        written = marshal.dumps((kind.__name__, parts), 2)
        return hashlib.blake2b(written, digest_size=16).digest()


def _is_value(kind: type) -> bool:
    """Whether nobody can tell instances from equal ones, but by `is`."""
    bases = mro_of(kind)
    if any(id(base) in _VALUES for base in bases):
        return True
    parameters = namespace_of(kind).get("__dataclass_params__")
    return type(parameters) is _DATACLASS and parameters.frozen


def _contents(value: Any) -> list[Any]:
    if type(value) is dict:
        return [each for pair in value.items() for each in pair]
    contents: Iterable[Any] = value
    return list(contents)
