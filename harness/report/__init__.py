"""Reports for people: a text for each scenario, a table and a page of all."""

from everyorder.harness.report.observation import divergence, sections
from everyorder.harness.report.page import document, page, write
from everyorder.harness.report.summary_table import (
    ScenarioNotes,
    brief_note_lines,
    note_lines,
    notes_of,
    overview,
    summary,
)
from everyorder.harness.report.text import (
    render,
    render_violation,
    silent_step_lines,
    silent_steps,
    titled_silent_steps,
)

__all__ = [
    "ScenarioNotes",
    "brief_note_lines",
    "divergence",
    "document",
    "note_lines",
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
    "write",
]
