"""First scenarios, written by trying what works."""

from harness.writing.draft import Draft
from harness.writing.process import SECONDS, scenario_text

__all__ = [
    "SECONDS",
    "Draft",
    "scenario_text",
]
