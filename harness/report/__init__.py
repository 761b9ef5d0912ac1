"""Reports for people: a text for each scenario, a table and a page of all."""

from harness.outcome import Unexplored
from harness.report.observation import divergence, sections
from harness.report.page import document, page, write
from harness.report.table import (
    ScenarioNotes,
    brief_note_lines,
    notes_of,
    overview,
    summary,
)
from harness.report.table import note_lines as told_notes
from harness.report.text import (
    render,
    render_violation,
    silent_step_lines,
    silent_steps,
    titled_silent_steps,
)

__all__ = [
    "ScenarioNotes",
    "Unexplored",
    "brief_note_lines",
    "divergence",
    "document",
    "notes_of",
    "overview",
    "page",
    "render",
    "render_violation",
    "sections",
    "silent_step_lines",
    "silent_steps",
    "summary",
    "titled_silent_steps",
    "told_notes",
    "write",
]
