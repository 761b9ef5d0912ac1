"""The members of a group, as programs name them: by name, by id, or by both.

Rules:
- the session reports who joins and who is lost; the table has the members in between;
- a name and an id belong to one member.  A restarted worker replaces its former life;
- a worker that has left, or was lost, remains known: a call of it fails as a call that
  was in flight does, by its future, and is not a mistake of the caller;
- the table is read on any thread, and changed by the thread that handles events.
"""

from difflib import get_close_matches

from everyorder.runtime.errors.rpc import RpcMisuse
from everyorder.runtime.rpc.protocol.identities import WorkerInfo, WorkerNode

# Workers that have left; of more, those that left first are unknown again.
_MOST_DEPARTED = 4096


class MemberTable:
    """The members that the worker `me` knows, itself included."""

    def __init__(self, me: str) -> None:
        self._me = me
        self._nodes: dict[str | int, WorkerNode] = {}
        self._departed: dict[str | int, WorkerNode] = {}

    def put(self, node: WorkerNode) -> None:
        """Add a member."""
        self._nodes[node.name] = self._nodes[node.id] = node
        for key in (node.name, node.id):
            self._departed.pop(key, None)

    def remove(self, node: WorkerNode) -> None:
        """Remove a member, unless another one has its name or id by now."""
        for key in (node.name, node.id):
            if self._nodes.get(key) == node:
                # In this order: another thread finds it in one of the two.
                self._departed[key] = node
                del self._nodes[key]
        while len(self._departed) > 2 * _MOST_DEPARTED:
            del self._departed[next(iter(self._departed))]

    def nodes(self) -> list[WorkerNode]:
        """Return the members, in the order of their ids."""
        named = (node for key, node in [*self._nodes.items()] if isinstance(key, str))
        return sorted(named, key=lambda node: node.id)

    def find(self, to: str | int | WorkerInfo, *, departed: bool = False) -> WorkerNode:
        """Return the member with a name, an id, or both; with `departed`, also one that
        has left.

        Raises:
            RpcMisuse: no member matches, or `to` is of another type.
        """
        tables = (self._nodes, self._departed) if departed else (self._nodes,)
        if isinstance(to, WorkerInfo):
            for nodes in tables:
                node = nodes.get(to.name)
                if node is not None and node.id == to.id:
                    return node
            description = f"{to.name}, id {to.id}"
        elif isinstance(to, str | int) and not isinstance(to, bool):
            for nodes in tables:
                node = nodes.get(to)
                if node is not None:
                    return node
            description = f"name {to}" if isinstance(to, str) else f"id {to}"
        else:
            raise RpcMisuse(
                call="to",
                found=f"the worker {to!r}: Cannot get WorkerInfo from name {to!r}",
                wanted="a name, an id, or a WorkerInfo",
            )
        names = [node.name for node in self.nodes()]
        near = get_close_matches(str(to), names) if isinstance(to, str) else names
        raise RpcMisuse(
            code="UnknownWorker",
            worker=self._me,
            found=description,
            near=tuple(near[:8]),
        )
