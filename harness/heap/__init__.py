"""The complete state of any Python registry, as a canonical form of its objects."""

from harness.heap.answer import Answer as Answer
from harness.heap.answer import canonical as canonical
from harness.heap.heap import Heap as Heap
from harness.heap.records import Portrait as Portrait
from harness.heap.records import differences as differences
from harness.heap.scope import Scope as Scope
from harness.heap.scope import scope_of as scope_of
