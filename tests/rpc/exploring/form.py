"""The form of a world: equal exactly where worlds are the same but for names.

True only here: how names are taken out.  Forks and calls are numbered by first visit,
in an order that no name has a part in: workers by number, tables in the order in which
they are walked by the machine, which is state.  What a machine never reads again is
left out: the counter of names, where a confirmed reference came from.
"""

from array import array
from collections.abc import Hashable
from hashlib import blake2b

from everyorder.runtime.rpc.protocol.identities import Fork, RRefId
from everyorder.runtime.rpc.protocol.messages import (
    Accept,
    Delete,
    ReferenceRefused,
    ReferenceRegistered,
    Register,
)
from everyorder.runtime.rpc.protocol.ownership import Use
from tests.rpc.exploring.world import Answered, Cancelled, Carrier, World

USES = {use: number for number, use in enumerate(Use)}
WAITS = frozenset({Use.UNKNOWN, Use.PENDING})
ARRIVING = WAITS | {Use.LISTED}
KINDS = {
    kind: -10 - number
    for number, kind in enumerate(
        (
            Carrier,
            Answered,
            Cancelled,
            Register,
            ReferenceRegistered,
            ReferenceRefused,
            Accept,
            Delete,
        )
    )
}
# Between two parts; no name is negative.
END, NONE = -1, -2


def form(world: World) -> bytes:
    """The form, as 16 bytes."""
    numbers: dict[Hashable, int] = {}
    said: list[int] = [*world.left, world.sent, world.late, *world.made, END]
    said += [*sorted(world.crashed), END]
    add = said.append

    def name(what: Hashable) -> None:
        number = numbers.get(what)
        if number is None:
            number = numbers[what] = len(numbers)
        add(number)

    def value(rref: RRefId | None) -> None:
        add(NONE if rref is None else rref.local_id)

    def reference(fork: Fork) -> None:
        add(fork.rref.local_id)
        add(fork.owner.id)
        name(fork.fork)

    for number, worker in enumerate(world.workers):
        if number in world.crashed:
            continue
        refs = worker.refs
        for used in refs.users.used.values():
            reference(used.fork)
            add(USES[used.use])
            if used.use in WAITS:
                add(used.sender.id)
            if used.use in ARRIVING:
                name(used.source)
            for pin in used.pins:
                name(pin)
            add(END)
        add(END)
        owners = refs.owners
        for rref, owned in owners.values.items():
            value(rref)
            add(owned.reported)
            add(owned.handles)
            for fork, node in owned.forks.items():
                name(fork)
                add(node.id + 100 * (fork in owners.fenced))
            add(END)
            for hold in owned.holds:
                name(hold)
            add(END)
        add(END)
        for key, outgoing in refs.outgoing.items():
            name(key)
            add(outgoing.peer.id)
            for item in outgoing.carries:
                if isinstance(item, Fork):
                    reference(item)
                else:
                    value(item)
            name(outgoing.via)
        add(END)
        for key, incoming in refs.incoming.items():
            name(key)
            add(incoming.peer.id)
            for arrived in incoming.forks:
                reference(arrived)
            add(END)
            for awaited in incoming.awaited:
                name(awaited)
            value(incoming.creates)
            value(incoming.target)
            add(incoming.parked)
        add(END)
        for child, pinned in refs.children.items():
            name(child)
            add(pinned.peer.id)
            name(pinned.parent)
        add(END)
        for key, rref in refs.holding.items():
            name(key)
            value(rref)
        add(END)
        for node in world.nodes:
            if node not in refs.members:
                add(node.id)
        add(END)
        said.extend(sorted(numbers.setdefault(f, len(numbers)) for f in worker.held))
        add(END)
        said.extend(rref.local_id for rref in worker.handles)
        add(END)
        for key, asked in worker.asking.items():
            name(key)
            name(asked.fork)
        add(END)
        for key in worker.running:
            name(key)
        add(END)
        for key, (to, waiting) in worker.waiting.items():
            name(key)
            add(to)
            value(waiting.creates)
            name(waiting.fork)
            value(waiting.target)
        add(END)
    for pair, queue in world.channels.items():
        add(world.ends[pair] + 10 * (pair in world.expiring))
        for message in (*queue, None, *world.waits[pair]):
            if message is None:
                add(NONE)
                continue
            add(KINDS[type(message)])
            match message:
                case Carrier():
                    name(message.key)
                    for carried in message.forks:
                        reference(carried)
                    value(message.creates)
                    name(message.fork)
                    value(message.target)
                case Answered():
                    name(message.key)
                    add(message.dead)
                case Cancelled():
                    name(message.key)
                case Register(rref, fork_id, _):
                    value(rref)
                    name(fork_id)
                case Delete(rref, fork_id):
                    value(rref)
                    name(fork_id)
                case _:
                    name(message.fork)  # type: ignore[union-attr]  # the others have one
        add(END)
    return blake2b(array("h", said).tobytes(), digest_size=16).digest()
