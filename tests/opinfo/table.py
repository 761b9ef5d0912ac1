"""All rows, and which operators of namespace `core` they cover."""

from tests.opinfo import (
    table_composed,
    table_handled,
    table_images,
    table_index_writes,
    table_linalg,
    table_making,
    table_movement,
    table_networks,
    table_pointwise,
    table_reductions,
    table_statistics,
    table_views,
)
from tests.opinfo.info import OpInfo, forms

ROWS: tuple[OpInfo, ...] = (
    *table_pointwise.ROWS,
    *table_reductions.ROWS,
    *table_networks.ROWS,
    *table_images.ROWS,
    *table_movement.ROWS,
    *table_index_writes.ROWS,
    *table_linalg.ROWS,
    *table_views.ROWS,
    *table_making.ROWS,
    *table_composed.ROWS,
    *table_handled.ROWS,
    *table_statistics.ROWS,
)
# Rows that stand beside the one of their operator, for an option that changes the rule.
VARIANTS: tuple[OpInfo, ...] = (
    *table_pointwise.VARIANTS,
    *table_reductions.VARIANTS,
)


def covered() -> set[str]:
    """The names of all operators that a row speaks of."""
    names = set()
    for row in ROWS:
        names |= {f"core::{row.name}"}
        names |= {f"core::{name}" for name in forms(row.name).values()}
    return names
