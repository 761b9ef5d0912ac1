"""Identities: workers, their lives, and ids that are the same on all workers.

WorkerInfo         a worker, as programs see it: its name and its number WorkerNode
one life of a worker: a restarted worker is another node GloballyUniqueId   an id that
is unique among all workers RRefId, ForkId     the id of a referenced value, and of one
reference to it Fork               one reference of one user, with the owner of the
value
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from everyorder.runtime.errors.rpc import RpcMisuse

# In characters, which are bytes: `WORKER_NAME` allows ASCII only.
LONGEST_NAME = 127
# The limits of names and numbers in `torch.distributed.rpc`.
WORKER_NAME = re.compile(rf"[A-Za-z0-9_:-]{{1,{LONGEST_NAME}}}")
LARGEST_ID = 32767
NAMES_TAKEN = (
    "a name: Worker name must match ^[A-Za-z0-9-_:]*$, and must be non-empty and "
    "shorter than 128 chars"
)
# The type of a value without a script type.
OBJECT = "PyObject"


@dataclass(frozen=True, slots=True, order=True)
class WorkerInfo:
    """A worker: `name` as it was started, `id` as it was admitted (from 0 on)."""

    name: str
    id: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not WORKER_NAME.fullmatch(self.name):
            raise RpcMisuse(
                call="WorkerInfo",
                found=f"the name {self.name!r}",
                wanted=NAMES_TAKEN,
            )
        number = isinstance(self.id, int) and not isinstance(self.id, bool)
        if not number or not 0 <= self.id <= LARGEST_ID:
            raise RpcMisuse(
                call="WorkerInfo",
                found=f"the id {self.id!r}",
                wanted=(
                    f"a whole number; RPC worker id out of bound of int16_t: from 0 to "
                    f"{LARGEST_ID}"
                ),
            )

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"


class WorkerNode(NamedTuple):
    """One life of a worker; `incarnation` is drawn at its start (63 random bits)."""

    name: str
    id: int
    incarnation: int

    @property
    def info(self) -> WorkerInfo:
        """Return the worker, as programs see it."""
        return WorkerInfo(self.name, self.id)


class GloballyUniqueId(NamedTuple):
    """An id that is unique among all workers and all their lives."""

    created_on: int
    local_id: int
    # The life that created it; a restarted worker counts from 0 again.
    incarnation: int = 0

    def __repr__(self) -> str:
        of = f"created_on={self.created_on}, local_id={self.local_id}"
        return f"GloballyUniqueId({of})"


RRefId = GloballyUniqueId
ForkId = GloballyUniqueId


class Fork(NamedTuple):
    """One reference, held by its receiver: to the value `rref` of `owner`."""

    rref: RRefId
    fork: ForkId
    owner: WorkerNode
    # The type of the value in the schema language, "" if it is unknown.
    type: str = ""
