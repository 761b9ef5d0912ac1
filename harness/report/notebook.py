"""The outcome of one scenario in a notebook: a sentence, then the evidence.

The text is that of `failure.py`.

Rules:
- the page around it decides on colours and fonts: text and background are inherited,
  so that light and dark themes both work; only the bar next to it has a colour, which
  both show;
- no script, no style sheet and no address: it is shown as it is, also without trust;
- every text is escaped: names and values may be anything.
"""

from html import escape

from everyorder.harness.base.columns import WIDTH, wrap_words
from everyorder.harness.report.failure import headline, render
from everyorder.harness.report.observation import visible
from everyorder.harness.report.text import sentence
from everyorder.harness.report.verdict import Report, register_renderer

# The bar: green for a pass, red for a fault, amber if neither was decided.
PASSED, FAULT, UNKNOWN = "#2e9e5b", "#d9484a", "#c98a1b"

_HTML = """\
<div style="border-left: 4px solid {colour}; padding-left: 0.8em; color: inherit">
<p style="margin: 0"><strong>{name}</strong>: {sentence}</p>
<pre style="margin: 0.5em 0 0; background: none; color: inherit; overflow-x: auto">\
{evidence}</pre>
</div>
"""


def html(report: Report) -> str:
    """Return a report as a small part of a page."""
    violations = report.exploration.violations
    text = headline(report, violations[0]) if violations else sentence(report)
    # The text begins with the same sentence, wrapped.
    begin = len(wrap_words(f"{report.scenario}: {text}", WIDTH))
    evidence = render(report).split("\n")[begin:]
    colour = PASSED if report.passed else FAULT if violations else UNKNOWN
    return _HTML.format(
        colour=colour,
        name=_escaped(report.scenario),
        sentence=_escaped(text),
        evidence=_escaped("\n".join(evidence)),
    )


def _escaped(text: str) -> str:
    return escape(visible(text))


register_renderer("html", html)
