"""The order of imports: played in fresh processes, compared, and reported.

Names load on first access: the process that observes the imported modules imports
`harness.tools.imports.import_observation` and must not import anything else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everyorder.harness.tools.imports.import_observation import (
        LEFT_OUT,
        OrderDifference,
    )
    from everyorder.harness.tools.imports.import_orders import (
        SECONDS,
        ImportOrders,
        of_imports,
    )
    from everyorder.harness.tools.imports.import_report import (
        ImportReport,
        OrderFinding,
        SizeRow,
    )
    from everyorder.harness.tools.imports.order_processes import (
        Isolation,
        usual_isolation,
    )

_PLACES = {
    "import_orders": ("SECONDS", "ImportOrders", "of_imports"),
    "import_observation": ("LEFT_OUT", "OrderDifference"),
    "order_processes": ("Isolation", "usual_isolation"),
    "import_report": ("OrderFinding", "ImportReport", "SizeRow"),
}

__all__ = [
    "LEFT_OUT",
    "SECONDS",
    "ImportOrders",
    "ImportReport",
    "Isolation",
    "OrderDifference",
    "OrderFinding",
    "SizeRow",
    "of_imports",
    "usual_isolation",
]


def __getattr__(name: str) -> Any:
    for place, names in _PLACES.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{place}"), name)
            globals()[name] = value
            return value
    raise AttributeError(
        f"module 'everyorder.harness.tools.imports' has no attribute {name!r}"
    )


def __dir__() -> list[str]:
    return sorted(__all__)
