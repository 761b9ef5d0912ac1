"""First scenarios, written by trying calls on a registry."""

from everyorder.harness.tools.scaffold.draft import Draft
from everyorder.harness.tools.scaffold.process import SECONDS, scenario_text

__all__ = [
    "SECONDS",
    "Draft",
    "scenario_text",
]
