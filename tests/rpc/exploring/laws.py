"""What holds in every world that can be reached, and in every one that is at rest.

True only here: the laws.  Each looks at a world and returns what it found, or nothing.
"""

from everyorder.runtime.rpc.protocol.ownership import SENDABLE, Use
from everyorder.runtime.rpc.protocol.reference_machine import ReferenceMachine
from tests.rpc.exploring.world import World


def confirmed_are_listed(world: World) -> str | None:
    """An owner that lives lists every reference that its user takes for confirmed."""
    for worker in world.workers:
        for fork, used in worker.refs.users.used.items():
            if used.use not in SENDABLE and used.use is not Use.LISTED:
                continue
            owner = used.fork.owner.id
            if owner in world.crashed:
                continue
            owned = world.workers[owner].refs.owners.values.get(used.fork.rref)
            if owned is None:
                return f"w{owner} has freed {used.fork.rref}, which {fork} refers to"
            if owned.forks.get(fork) != worker.refs.node:
                return f"w{owner} does not list {fork}"
    return None


def held_are_known(world: World) -> str | None:
    """What an agent holds is known: by its machine, or by the owner's table."""
    for number, worker in enumerate(world.workers):
        for fork in worker.held:
            used = worker.refs.users.used.get(fork)
            listed = worker.refs.owners.listed.get(fork)
            if used is None and listed is None:
                return f"w{number} holds {fork}, which nobody knows"
    return None


def pins_pin(world: World) -> str | None:
    """A reference is retired for as long as it is pinned; a pin has its reason."""
    for number, worker in enumerate(world.workers):
        refs = worker.refs
        for fork, used in refs.users.used.items():
            if used.use is Use.RETIRED and not used.pins:
                return f"w{number} keeps {fork} for nobody"
            for pin in used.pins:
                if pin not in refs.children and pin not in refs.outgoing:
                    return f"w{number} has {fork} pinned by {pin}, which is gone"
        for child, pinned in refs.children.items():
            if pinned.parent not in refs.users.used:
                return f"w{number} has {child} without its parent"
    return None


def listed_are_found(world: World) -> str | None:
    """The owner's index of forks is that of its table."""
    for number, worker in enumerate(world.workers):
        owners = worker.refs.owners
        found = {
            fork: rref for rref, owned in owners.values.items() for fork in owned.forks
        }
        if found != owners.listed or not owners.fenced.keys() <= found.keys():
            return f"w{number} lists {owners.listed}, its table {found}"
    return None


def calls_keep_values(world: World) -> str | None:
    """What a call creates or fetches is there until it is replied to."""
    for number, worker in enumerate(world.workers):
        for key, rref in worker.running.items():
            owned = worker.refs.owners.values.get(rref)
            if owned is None or not owned.reported:
                return f"w{number} has freed {rref}, which {key} is at"
    return None


LAWS = (
    confirmed_are_listed,
    held_are_known,
    pins_pin,
    listed_are_found,
    calls_keep_values,
)


def remains(refs: ReferenceMachine) -> dict[str, object]:
    """Everything that a machine still has, by name; empty when it is at rest."""
    tables: dict[str, object] = {
        "values": refs.owners.values,
        "listed": refs.owners.listed,
        "fenced": refs.owners.fenced,
        "used": refs.users.used,
        "outgoing": refs.outgoing,
        "incoming": refs.incoming,
        "children": refs.children,
        "holding": refs.holding,
        "unheard": refs.unheard,
    }
    return {name: table for name, table in tables.items() if table}


def nothing_remains(world: World) -> str | None:
    """When nothing can happen any more, nothing is kept."""
    for number, worker in enumerate(world.workers):
        if number in world.crashed:
            continue
        left = remains(worker.refs)
        if worker.asking or worker.came or worker.waiting or worker.running:
            left["calls"] = (worker.asking, worker.came, worker.waiting, worker.running)
        if left:
            return f"w{number} keeps {left}"
    return None
