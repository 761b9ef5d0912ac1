"""The complete state of any Python registry, as a canonical form of its objects."""

from everyorder.harness.heap.answer import Answer as Answer
from everyorder.harness.heap.answer import canonical as canonical
from everyorder.harness.heap.heap import Heap as Heap
from everyorder.harness.heap.records import Portrait as Portrait
from everyorder.harness.heap.records import differences as differences
from everyorder.harness.heap.scope import Scope as Scope
from everyorder.harness.heap.scope import scope_of as scope_of
