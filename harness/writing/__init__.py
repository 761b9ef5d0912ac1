"""First scenarios, written by trying what works."""

from everyorder.harness.writing.draft import Draft
from everyorder.harness.writing.process import SECONDS, scenario_text

__all__ = [
    "SECONDS",
    "Draft",
    "scenario_text",
]
