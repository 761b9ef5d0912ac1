"""First scenarios, written by trying what works."""

from harness.writing.draft import (
    CannotCreate,
    CannotSave,
    Draft,
    FileExists,
    NoTarget,
    NothingRegisters,
    NotTried,
    TrialEnded,
)
from harness.writing.process import SECONDS, scenario_text

__all__ = [
    "SECONDS",
    "CannotCreate",
    "CannotSave",
    "Draft",
    "FileExists",
    "NoTarget",
    "NotTried",
    "NothingRegisters",
    "TrialEnded",
    "scenario_text",
]
