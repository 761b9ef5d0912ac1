"""The complete state of any Python registry, as a canonical form of its objects."""

from everyorder.harness.state.decode import Portrait as Portrait
from everyorder.harness.state.differences import differences as differences
from everyorder.harness.state.heap import Heap as Heap
from everyorder.harness.state.scope import FollowedScope as FollowedScope
from everyorder.harness.state.scope import scope_of as scope_of
from everyorder.harness.state.unique_values import unique_paths as unique_paths
from everyorder.harness.state.value_snapshot import ValueSnapshot as ValueSnapshot
from everyorder.harness.state.value_snapshot import canonical as canonical
