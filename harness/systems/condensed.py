"""A table as people can read it: what differs from the table of an empty operator.

True only here: the condensed form.  It names every slot whose content differs from the
same slot of an operator with no kernels under the built-in fallbacks, `missing` slots
included; neighbours with the same content are one line, `FIRST .. LAST (count)`.  The
form loses nothing: the empty table is always the same.
"""

from functools import lru_cache

from runtime.dispatch.dispatcher import BUILTIN
from runtime.dispatch.dump import REMEMBERED, TableReading, contents
from runtime.dispatch.table import recipe_of
from runtime.keys import SLOTS


@lru_cache(maxsize=REMEMBERED)
def condensed(reading: TableReading) -> str:
    """The lines of a table (`runtime.dispatch.dump.table_reading`), condensed."""
    held = contents(reading)
    empty = contents((recipe_of(()), (), BUILTIN.fallbacks.texts))
    lines: list[str] = []
    number = 0
    while number < len(SLOTS):
        last = number
        if held[number] != empty[number]:
            while (
                last + 1 < len(SLOTS)
                and held[last + 1] == held[number]
                and empty[last + 1] != held[number]
            ):
                last += 1
            span = SLOTS[number].name
            if last > number:
                span += f" .. {SLOTS[last].name} ({last - number + 1})"
            lines.append(f"{span}: {held[number] or 'missing'}\n")
        number = last + 1
    return "".join(lines)
