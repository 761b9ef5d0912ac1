"""Identities: workers, their lives, and names that mean the same on all workers.

WorkerInfo         a worker, as programs know it: its name and its number
Node               one life of a worker: a restarted worker is another node
GloballyUniqueId   a number that is drawn once among all workers
RRefId, ForkId     the id of a referenced value, and of one reference to it
Fork               one reference of one user, with the owner of the value
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

# In characters, which are bytes: those of `WORKER_NAME` are ASCII.
LONGEST_NAME = 127
# The names and the numbers of workers, as `torch.distributed.rpc` has them.
WORKER_NAME = re.compile(rf"[A-Za-z0-9_:-]{{1,{LONGEST_NAME}}}")
LARGEST_ID = 32767
# The type of a value that no program of the compiler takes.
OBJECT = "PyObject"


@dataclass(frozen=True, slots=True, order=True)
class WorkerInfo:
    """A worker: `name` as it was started, `id` as it was admitted (from 0 on)."""

    name: str
    id: int

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"


class WorkerNode(NamedTuple):
    """One life of a worker; `incarnation` is drawn when it starts (63 bits)."""

    name: str
    id: int
    incarnation: int

    @property
    def info(self) -> WorkerInfo:
        """The worker, as programs know it."""
        return WorkerInfo(self.name, self.id)


class GloballyUniqueId(NamedTuple):
    """A number that is drawn once among all workers and all their lives."""

    created_on: int
    local_id: int
    # The life that drew it; a restarted worker counts from 0 again.
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
