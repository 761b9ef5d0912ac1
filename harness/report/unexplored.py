"""A scenario, or a whole module, of which there is no report.

True only here: why nothing was explored, as one text; it stands in tables and pages
beside the reports, so that a broken scenario is never mistaken for a missing one.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unexplored:
    """`scenario` is its path, or the file's; `where` is FILE:LINE as far as known."""

    scenario: str
    where: str
    reason: str

    def render(self) -> str:
        """Where and why, on as few lines as the reason has."""
        return f"{self.where or self.scenario}: {self.reason}"
