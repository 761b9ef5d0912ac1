"""Reports for people: a text for each scenario, a table and a page of all."""

from harness.outcome import Unexplored
from harness.report.observation import divergence, sections
from harness.report.page import document, page, write
from harness.report.table import Noted, noted, overview, summary, told_briefly
from harness.report.table import told as told_notes
from harness.report.text import (
    never_done,
    render,
    render_violation,
    silent_steps,
    told_silent,
)

__all__ = [
    "Noted",
    "Unexplored",
    "divergence",
    "document",
    "never_done",
    "noted",
    "overview",
    "page",
    "render",
    "render_violation",
    "sections",
    "silent_steps",
    "summary",
    "told_briefly",
    "told_notes",
    "told_silent",
    "write",
]
