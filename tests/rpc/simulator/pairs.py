"""Pairs of the state of a machine and what happened to it, counted.

True only here: which pairs there are, and which of them cannot be seen, with the
reason.  Machines with a table of transitions are counted there: what is looked up has
happened.  Of channels it is counted besides which packets came in which state.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from everyorder.runtime.rpc.protocol import (
    call_machine,
    channel,
    membership,
    ownership,
    termination,
)
from everyorder.runtime.rpc.protocol.call_machine import Calls
from everyorder.runtime.rpc.protocol.channel import Channel
from everyorder.runtime.rpc.protocol.identities import WorkerNode
from everyorder.runtime.rpc.protocol.ownership import CarrierStatus, Verdict
from everyorder.runtime.rpc.protocol.wire import PacketKind

Pair = tuple[str, str, str]

TABLES: dict[str, tuple[ModuleType, str]] = {
    "calls": (call_machine, "TRANSITIONS"),
    "channel": (channel, "TRANSITIONS"),
    "termination": (termination, "TRANSITIONS"),
    "members": (membership, "TRANSITIONS"),
    "references": (ownership, "TABLE"),
}
STATES = (
    channel.CLOSED,
    channel.OPENING,
    channel.ANSWERING,
    channel.OPEN,
    channel.FENCED,
)
PACKETS = (
    PacketKind.DATA,
    PacketKind.HELLO,
    PacketKind.WELCOME,
    PacketKind.PING,
    PacketKind.PONG,
    PacketKind.RESET,
)


def _named(part: object) -> str:
    return str(getattr(part, "name", part))


def transitions() -> list[Pair]:
    """Every pair that the tables of the machines have."""
    return [
        (machine, _named(state), _named(what))
        for machine, (module, name) in TABLES.items()
        for state, what in getattr(module, name)
    ]


def everything() -> list[Pair]:
    """These, and which packets come in which state of a channel."""
    pairs = transitions()
    packets = [("packets", state, kind.name) for state in STATES for kind in PACKETS]
    return pairs + packets


class _Counted(dict[Any, Any]):
    """A table that counts what is looked up in it."""

    def __init__(
        self, table: dict[Any, Any], machine: str, seen: Counter[Pair]
    ) -> None:
        super().__init__(table)
        self.machine = machine
        self.seen = seen

    def _count(self, key: tuple[object, object]) -> None:
        self.seen[self.machine, _named(key[0]), _named(key[1])] += 1

    def __getitem__(self, key: tuple[object, object]) -> object:
        self._count(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        there = super().__contains__(key)
        # The end of a call is looked for, and nothing follows from it.
        if there and self.machine == "calls":
            assert isinstance(key, tuple), "keys are pairs"
            self._count(key)
        return there


@contextmanager
def counted() -> Iterator[Counter[Pair]]:
    """Count all pairs that are seen meanwhile."""
    seen: Counter[Pair] = Counter()
    tables = {machine: getattr(*place) for machine, place in TABLES.items()}
    data, note = Channel.data, Channel.note
    ends = Calls._cancelled, Calls._reply, Calls.judge

    def counting(kept: Any) -> Any:
        def came(self: Channel, found: Any, *rest: Any) -> Any:
            seen["packets", self.state, PacketKind(found.kind).name] += 1
            return kept(self, found, *rest)

        return came

    def cancelled(self: Calls, peer: WorkerNode, call: int) -> None:
        entry = self._ins.get((peer, call))
        if entry is not None:
            seen["calls", entry.state, "end"] += 1
        ends[0](self, peer, call)

    def reply(self: Calls, entry: Any, message: Any) -> None:
        seen["calls", entry.state, "end"] += 1
        ends[1](self, entry, message)

    def judge(self: Calls, verdict: Verdict, now: float) -> None:
        told = isinstance(verdict.key, tuple) and verdict.key[0] == "call"
        if verdict.incoming and told and verdict.status is CarrierStatus.DEAD:
            seen["calls", "ARRIVED", "end"] += 1
        ends[2](self, verdict, now)

    try:
        # Calls that came in end without a look into their table.
        Calls._cancelled, Calls._reply = cancelled, reply  # type: ignore[method-assign]  # while it counts
        Calls.judge = judge  # type: ignore[method-assign]  # while it counts
        for machine, (module, name) in TABLES.items():
            setattr(module, name, _Counted(tables[machine], machine, seen))
        Channel.data = counting(data)  # type: ignore[method-assign]  # while it counts
        Channel.note = counting(note)  # type: ignore[method-assign]  # while it counts
        yield seen
    finally:
        Calls._cancelled, Calls._reply, Calls.judge = ends  # type: ignore[method-assign]  # as they were
        for machine, (module, name) in TABLES.items():
            setattr(module, name, tables[machine])
        Channel.data = data  # type: ignore[method-assign]  # as it was
        Channel.note = note  # type: ignore[method-assign]  # as it was


# Pairs that no schedule can show, and why.
_FIRST = "the call ends first, and with it the reference; exploring reaches it"
UNREACHABLE: dict[Pair, str] = {
    ("references", "PLANNED", "LOST"): _FIRST,
    ("references", "UNWANTED", "LOST"): _FIRST,
    ("references", "ASKED", "LOST"): _FIRST,
    ("references", "FORSAKEN", "LOST"): _FIRST,
    (
        "termination",
        "FINISHING",
        "told",
    ): "who asks has lost whoever asked before, and hears nothing of it",
}


def table(seen: Counter[Pair]) -> str:
    """All pairs and how often each was seen, a line for each state."""
    lines = []
    for machine, state in dict.fromkeys(pair[:2] for pair in everything()):
        found = [
            f"{what} {seen[machine, state, what]:,}"
            for of, where, what in everything()
            if (of, where) == (machine, state)
        ]
        lines.append(f"{machine:<11}{state:<11}{', '.join(found)}")
    lines += [f"never: {' '.join(pair)}: {why}" for pair, why in UNREACHABLE.items()]
    return "\n".join(lines)
