"""Notes: what is said without a channel, each in a packet of its own kind.

    JOIN        Join        who wants to be a member; it does not know the keeper yet
    ADMITTED    Admission   it is one, with this number, beside these members
    REJECTED    Rejection   it is none, and why
    HELLO       Hello       a channel begins; what its sender takes
    WELCOME     Hello       the answer
    PING        Beat        is the other one there, and what came of what was sent
    PONG        Beat        the answer, or an acknowledgement alone
    RESET, BYE  (nothing)   there is no such channel; the sender leaves

A note may be lost, or come twice: whoever sends one sends it again until it is
answered, and whoever gets one twice answers twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct

from runtime.rpc.identities import Node
from runtime.rpc.messages import MEMBERS, Member, member, of_member
from runtime.rpc.wire import (
    DETAIL,
    ENDPOINT,
    KEY,
    LONG,
    NAME,
    SHORT,
    Kind,
    Malformed,
    Reader,
    of_node,
    of_text,
)

# Wanted ids, and sizes of groups, with -1 for none.
SIGNED = Struct("<q")
# A beat names so many packets that came early; more are told by the next one.
EARLY = 64

# Figures by name: so many at most.
FIGURES = 16

_BEAT = Struct("<QQ")
_FIGURE = Struct("<d")


@dataclass(frozen=True, slots=True)
class Join:
    """Who wants to be a member; `id` is the number that it wants, None for any.

    `shared` are figures that the whole group has to have the same, by name.
    """

    name: str
    endpoint: str
    key: str = ""
    id: int | None = None
    shared: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Admission:
    """Who joined is a member: `node`; the keeper is the first of `members`.

    `world_size` is None in a group that anybody may join.
    """

    node: Node
    members: tuple[Member, ...]
    world_size: int | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    """Who wanted to join is no member."""

    why: str


@dataclass(frozen=True, slots=True)
class Hello:
    """A channel begins; `largest` is the size of a payload that is taken here."""

    largest: int


@dataclass(frozen=True, slots=True)
class Beat:
    """A sign of life: its own number, the last number that came, what came early.

    A number of 0 is none.
    """

    stamp: int = 0
    echo: int = 0
    early: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Nothing:
    """The body of a packet whose kind says it all."""


NOTHING = Nothing()

Note = Join | Admission | Rejection | Hello | Beat | Nothing


def of_note(note: Note) -> bytes:
    """The body of a note."""
    match note:
        case Beat():
            early = note.early[:EARLY]
            return _BEAT.pack(note.stamp, note.echo) + b"".join(map(LONG.pack, early))
        case Hello():
            return LONG.pack(note.largest)
        case Join():
            return (
                SIGNED.pack(-1 if note.id is None else note.id)
                + of_text(note.name, NAME)
                + of_text(note.endpoint, ENDPOINT)
                + of_text(note.key, KEY)
                + SHORT.pack(len(note.shared))
                + b"".join(
                    of_text(name, NAME) + _FIGURE.pack(figure)
                    for name, figure in note.shared
                )
            )
        case Admission():
            return (
                SIGNED.pack(-1 if note.world_size is None else note.world_size)
                + of_node(note.node)
                + SHORT.pack(len(note.members))
                + b"".join(map(of_member, note.members))
            )
        case Rejection():
            return of_text(note.why, DETAIL)
        case Nothing():
            return b""


def _join(reader: Reader) -> Join:
    wanted = reader.number(SIGNED)
    return Join(
        reader.text(NAME),
        reader.text(ENDPOINT),
        reader.text(KEY),
        None if wanted < 0 else wanted,
        reader.many(FIGURES, _figure),
    )


def _figure(reader: Reader) -> tuple[str, float]:
    return reader.text(NAME), reader.numbers(_FIGURE)[0]


def _admitted(reader: Reader) -> Admission:
    size = reader.number(SIGNED)
    node = reader.node()
    return Admission(node, reader.many(MEMBERS, member), None if size < 0 else size)


def _beat(reader: Reader) -> Beat:
    stamp, echo = reader.numbers(_BEAT)
    rest = reader.rest()
    if rest.nbytes % LONG.size or rest.nbytes > EARLY * LONG.size:
        raise Malformed
    return Beat(stamp, echo, tuple(each[0] for each in LONG.iter_unpack(rest)))


_READERS: dict[Kind, Callable[[Reader], Note]] = {
    Kind.HELLO: lambda reader: Hello(reader.number(LONG)),
    Kind.WELCOME: lambda reader: Hello(reader.number(LONG)),
    Kind.PING: _beat,
    Kind.PONG: _beat,
    Kind.RESET: lambda reader: NOTHING,
    Kind.BYE: lambda reader: NOTHING,
    Kind.JOIN: _join,
    Kind.ADMITTED: _admitted,
    Kind.REJECTED: lambda reader: Rejection(reader.text(DETAIL)),
}


def note(kind: int, body: memoryview) -> Note:
    """The note of a packet that is not DATA.

    Raises:
        Malformed: it is none.
    """
    reader = Reader(body)
    found = _READERS[Kind(kind)](reader)
    reader.end()
    return found
