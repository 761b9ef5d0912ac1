"""The kernel at Meta that a custom operator starts with: what it makes of no data.

True only here: what can be said without a fake kernel.  An operator that only writes to
its arguments makes nothing of them that has a shape: its fake does nothing.  Any other
refuses by name until `register_fake` is used; that kernel stands before this one.
"""

from typing import Any

from runtime.custom.results import annotated
from runtime.dispatch.kernel import Kernel, direct
from runtime.errors.custom_op import MissingFake
from runtime.schema.schema import Schema
from runtime.schema.types import TensorType


def first_fake(schema: Schema) -> Kernel:
    """The kernel of an operator without a fake of its own."""
    returned = _written_results(schema)
    if returned is None:
        operator, text = str(schema.name), str(schema)

        def missing(*arguments: Any) -> Any:
            raise MissingFake(operator=operator, schema=text)

        return direct(missing, "missing_fake")
    places = returned

    def nothing(*arguments: Any) -> Any:
        results = tuple([arguments[place] for place in places])
        return results[0] if len(results) == 1 else results or None

    return direct(nothing, "writes_only")


def _written_results(schema: Schema) -> list[int] | None:
    """The arguments that are the results, if every result is one that is written to."""
    if not schema.is_mutable:
        return None
    found = []
    for result in range(len(schema.returns)):
        places = [p for p in annotated(schema, result) if schema.arguments[p].is_write]
        if len(places) != 1 or schema.returns[result].type != TensorType:
            return None
        found += places
    return found
