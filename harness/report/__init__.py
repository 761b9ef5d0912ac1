"""Reports for people: a text for each scenario, a table and a page of all."""

from everyorder.harness.report.failure import render, render_violation
from everyorder.harness.report.notebook import html
from everyorder.harness.report.observation import divergence, sections
from everyorder.harness.report.page import document, document_data, page, write
from everyorder.harness.report.summary_table import (
    ScenarioNotes,
    note_lines,
    notes_of,
    overview,
    summary,
    verdict_line,
)
from everyorder.harness.report.text import (
    silent_step_lines,
    silent_steps,
    titled_silent_steps,
)

__all__ = [
    "ScenarioNotes",
    "divergence",
    "document",
    "document_data",
    "html",
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
    "verdict_line",
    "write",
]
