"""The members of a group, as programs name them: by name, by id, or by both.

Rules:
- the session reports who joins and who is lost; the table has the members in between;
- a name and an id belong to one member.  A restarted worker replaces its former life;
- the table is read on any thread, and changed by the thread that handles events.
"""

from difflib import get_close_matches

from everyorder.runtime.errors.rpc import RpcMisuse
from everyorder.runtime.rpc.protocol.identities import WorkerInfo, WorkerNode


class MemberTable:
    """The members that the worker `me` knows, itself included."""

    def __init__(self, me: str) -> None:
        self._me = me
        self._nodes: dict[str | int, WorkerNode] = {}

    def put(self, node: WorkerNode) -> None:
        """Add a member."""
        self._nodes[node.name] = self._nodes[node.id] = node

    def remove(self, node: WorkerNode) -> None:
        """Remove a member, unless another one has its name or id by now."""
        for key in (node.name, node.id):
            if self._nodes.get(key) == node:
                del self._nodes[key]

    def nodes(self) -> list[WorkerNode]:
        """Return the members, in the order of their ids."""
        named = (node for key, node in [*self._nodes.items()] if isinstance(key, str))
        return sorted(named, key=lambda node: node.id)

    def find(self, to: str | int | WorkerInfo) -> WorkerNode:
        """Return the member with a name, an id, or both.

        Raises:
            RpcMisuse: no member matches, or `to` is of another type.
        """
        if isinstance(to, WorkerInfo):
            node = self._nodes.get(to.name)
            if node is not None and node.id == to.id:
                return node
            description = f"{to.name}, id {to.id}"
        elif isinstance(to, str | int) and not isinstance(to, bool):
            node = self._nodes.get(to)
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
