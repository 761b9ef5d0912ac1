"""First scenarios, written by trying what works."""

from harness.writing.draft import Draft
from harness.writing.errors import (
    CannotCreate,
    CannotSave,
    FileExists,
    NoTarget,
    NothingRegisters,
    NotTried,
    TrialEnded,
)
from harness.writing.process import SECONDS, written

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
    "written",
]
