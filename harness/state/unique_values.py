"""Values that are new each time: clock readings, UUIDs, temporary names, ids.

Such a value differs in every fresh system although `create` makes it fresh.  It is
recognised twice: it differed where the same history was played on two fresh systems,
and it belongs to a kind of the table below.  From then on a state has, in the place of
each value of these kinds, the number of its first occurrence: which places share a
value is state, the value is not.

The kinds are narrow on purpose.  A counter in a name, a random number, or the digits of
an unknown format may be state of an earlier system; these stay as they are, and a
difference is reported.

The id of a thread or of a process is a number like any other.  It is recognised as the
id of a running thread, or of this process, when the portrait was made, and under the
names of attributes where it differed; elsewhere an equal number is state.

The order of two such values as keys of one dict does not repeat.  Items of a dict
with such a key are written in the order of the dict (`tokens.arrange`).  Members of a
set are not ordered; two of them in one set still differ.
"""

import marshal
import os
import re
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from everyorder.harness.engine.protocol import Caveat
from everyorder.harness.state.decode import Portrait
from everyorder.harness.state.differences import differences

# A reading is of the present if it is between the start of this process, or a day ago
# for a clock with time zones, and now.
_DAY = 86_400.0
_STARTS = time.monotonic(), time.perf_counter()
_NANOSECONDS, _MILLISECONDS = 1e9, 1e3

# The kind of an id; the name of its attribute follows, as one more condition.
_ID = "id of a thread or process"

# Attributes of threads that the system chooses.
_THREAD_IDS = frozenset({"_ident", "_native_id", "ident", "native_id", "thread_id"})

_UUID = re.compile(
    r"(?<![0-9a-fA-F])[0-9a-fA-F]{8}(-?)[0-9a-fA-F]{4}\1[1-8][0-9a-fA-F]{3}\1"
    r"[89abAB][0-9a-fA-F]{3}\1[0-9a-fA-F]{12}(?![0-9a-fA-F])"
)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?")
_THREAD = re.compile(r"\bThread-\d+\b")


def _temporary_names() -> re.Pattern[str]:
    folder = re.escape(tempfile.gettempdir().rstrip("/\\"))
    return re.compile(rf"{folder}[/\\][^/\\\s'\"]+")


def _is_now(seconds: float) -> bool:
    now = time.time()
    return now - _DAY <= seconds <= now + _DAY


def _is_reading(seconds: float) -> bool:
    clocks = zip(_STARTS, (time.monotonic(), time.perf_counter()), strict=True)
    return any(start <= seconds <= now for start, now in clocks)


def _is_moment(text: str) -> bool:
    try:
        moment = datetime.fromisoformat(text.replace(",", "."))
    except ValueError:
        return False
    return _is_now(moment.replace(tzinfo=UTC).timestamp())


def _is_packed_moment(data: bytes) -> bool:
    """Return True for the state of a `datetime` of the present."""
    if len(data) != 10:
        return False
    try:
        moment = datetime(  # an unknown zone is less than a day away
            *(int.from_bytes(data[:2]), *data[2:7])
        )
        moment += timedelta(microseconds=int.from_bytes(data[7:]))
        return _is_now(moment.replace(tzinfo=UTC).timestamp())
    except (ValueError, OverflowError):
        return False


def _is_uuid(value: int) -> bool:
    return (
        100 < value.bit_length() <= 128
        and uuid.UUID(int=value).variant == uuid.RFC_4122
        and 1 <= (value >> 76 & 15) <= 8
    )


# What `number_kind` returns for a number of no kind.
_NONE = ""


def number_kind(value: float) -> str:
    """Return the kind of a number that is new each time, or ""."""
    if type(value) is int and _is_uuid(value):
        return "uuid"
    for scale in (1.0, _MILLISECONDS, _NANOSECONDS):
        # An integer of seconds is too often an ordinary number of another meaning.
        if type(value) is int and scale == 1.0 and not _is_now(value):
            continue
        if _is_now(value / scale):
            return "timestamp"
        if _is_reading(value / scale) and (type(value) is float or scale != 1.0):
            return "clock reading"
    return _NONE


def running_ids() -> frozenset[int]:
    """Return the id of this process, and both ids of each of its threads."""
    ids = {os.getpid()}
    for thread in threading.enumerate():
        ids |= {thread.ident or 0, thread.native_id or 0}
    return frozenset(ids - {0})


class UniqueValues:
    """Replaces the values of some kinds by the numbers of their first occurrences.

    `ids` are numbers that are ids of threads or processes below the attributes that
    `kinds` names.
    """

    def __init__(self, kinds: Iterable[str], ids: Iterable[int] = ()) -> None:
        self.kinds = frozenset(kinds)
        self.ids = set(ids)
        prefix = f"{_ID} "
        self._attributes = {
            kind.removeprefix(prefix) for kind in self.kinds if kind.startswith(prefix)
        }
        self._patterns: list[tuple[str, re.Pattern[str], Callable[[str], bool]]] = [
            (kind, pattern, test)
            for kind, pattern, test in (
                ("uuid", _UUID, bool),
                ("datetime", _MOMENT, _is_moment),
                ("temporary name", _temporary_names(), bool),
                ("thread", _THREAD, bool),
            )
            if kind in self.kinds
        ]

    def note_running(self) -> None:
        """Add the present ids; those of threads that end are still recognised."""
        if self._attributes:
            self.ids |= running_ids()

    def renamed(self, tokens: list[Any]) -> list[Any]:
        """Return tokens without the values of these kinds."""
        numbers: dict[object, str] = {}

        def name(kind: str, value: object) -> str:
            return numbers.setdefault((kind, value), f"{kind} {len(numbers) + 1}")

        renamed: list[Any] = []
        before: object = None
        for token in tokens:
            kind = self.kind(token, before)
            if kind:
                renamed.append(("", name(kind, token)))
            elif type(token) is str and self._patterns:
                renamed.append(self._text(token, name))
            else:
                renamed.append(token)
            before = token
        return renamed

    def kind(self, token: object, before: object = None) -> str:
        """Return the kind of a token that is a value of these kinds, or ""."""
        kind = _NONE
        if type(token) is float:
            kind = number_kind(token)
        elif type(token) is tuple and len(token) == 1 and type(token[0]) is int:
            if type(before) is str and before in _THREAD_IDS:
                kind = "thread"
            elif before in self._attributes and token[0] in self.ids:
                return _ID
            else:
                kind = number_kind(token[0])
        elif type(token) is bytes and _is_packed_moment(token):
            kind = "datetime"
        return kind if kind in self.kinds else _NONE

    def is_key(self, key: object) -> bool:
        """Return True if a key of a dict is, or holds, a value of these kinds."""
        if type(key) is str:
            return self._text(key, lambda *_: "") != key
        if type(key) is int:
            return bool(self.kind((key,)))
        if type(key) is tuple:
            return any(map(self.is_key, key))
        kinds = {uuid.UUID: "uuid", datetime: "datetime"}
        return kinds.get(type(key), self.kind(key)) in self.kinds

    def _text(self, text: str, name: Callable[[str, object], str]) -> str:
        for kind, pattern, test in self._patterns:

            def replaced(
                match: re.Match[str],
                kind: str = kind,
                test: Callable[[str], bool] = test,
            ) -> str:
                return f"<{name(kind, match[0])}>" if test(match[0]) else match[0]

            text = pattern.sub(replaced, text)
        return text


KINDS = (
    "datetime",
    "timestamp",
    "clock reading",
    "uuid",
    "temporary name",
    "thread",
)


def unique_paths(one: Portrait, other: Portrait) -> dict[str, str]:
    """Return the paths of values that are new each time, with their kinds.

    `one` and `other` are portraits after the same history on two fresh systems.  Empty
    if anything else differs.
    """
    kinds = (*KINDS, *_kinds_of_ids(one, other))
    if one == other or _without(one, kinds) != _without(other, kinds):
        return {}
    paths: dict[str, str] = {}
    for kind in kinds:
        others = [each for each in kinds if each != kind]
        for line in differences(_without(one, others), _without(other, others)):
            paths[_place(line)] = kind
    return paths


def _kinds_of_ids(one: Portrait, other: Portrait) -> list[str]:
    """Return a kind for each name of an attribute that has a different id in both."""
    pairs = list(zip(_tokens(one), _tokens(other), strict=False))
    names = {
        before
        for (before, also), (first, second) in pairwise(pairs)
        if first != second and type(before) is str and before == also
        if _is_id(first, one.ids) and _is_id(second, other.ids)
    }
    return [f"{_ID} {name}" for name in sorted(names)]


def _is_id(token: object, ids: frozenset[int]) -> bool:
    return type(token) is tuple and len(token) == 1 and token[0] in ids


def _place(line: str) -> str:
    """Return the path of a difference; for a key that differs, that of its dict."""
    path, _, values = line.partition(": ")
    if "<absent>" in values and path.endswith("]"):
        return f"{path[: path.rindex('[')]}[...]"
    for suffix in (".state[0]", ".int"):  # parts of a datetime, of a UUID
        path = path.removesuffix(suffix)
    return path


def _without(portrait: Portrait, kinds: Iterable[str]) -> Portrait:
    renamed = UniqueValues(kinds, portrait.ids).renamed(_tokens(portrait))
    return replace(portrait, tokens=marshal.dumps(renamed, 2))


def _tokens(portrait: Portrait) -> list[Any]:
    tokens: list[Any] = marshal.loads(portrait.tokens)  # noqa: S302  # our own bytes
    return tokens


def unique_caveats(paths: Mapping[str, str]) -> tuple[Caveat, ...]:
    """Return the assumption about values that are new each time."""
    if not paths:
        return ()
    listed = ", ".join(
        f"{path} ({_ID if kind.startswith(_ID) else kind})"
        for path, kind in sorted(paths.items())
    )
    text = f"differs in every fresh system: {listed}, which no answer reads"
    return (Caveat("assumed", text),)
