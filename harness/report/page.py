"""All reports as one page that needs no network, and as a JSON document.

The page is one file: it contains a style sheet and a small script, its content policy
forbids all loading, and it stays below ten megabytes (`state_lattice.py` lists the
omitted parts). Without the script everything can be read; the script adds the filter,
the copy buttons, and opens the sections around the target of a link to a state. A
scenario's facts are in the order of its text. The JSON document, for programs, holds
verdicts, guarantees, counts and violations; dumps are stored in the expect files only.
Both depend on the reports only, not on time or place.

Rules: no external addresses; colours only as variables, once for light and once for
dark; no animation.

When you change a field of the document, change `FORMAT`.
"""

import json
import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from everyorder.harness.engine.result import Violation
from everyorder.harness.report.evidence import (
    explanation,
    extent,
    other_history_lines,
    recurrence_lines,
    replay_commands,
)
from everyorder.harness.report.raised import raised_lines, typo_lines, vacuity_lines
from everyorder.harness.report.state_lattice import (
    Allowance,
    draw,
    state_id,
    states_html,
)
from everyorder.harness.report.summary_table import COMMON, duration, note_texts
from everyorder.harness.report.text import (
    counts_text,
    facts,
    plural,
    sentence,
    short_guarantee,
    square_sentence,
)
from everyorder.harness.report.verdict import Report, Unexplored

CSS = """
:root {
  color-scheme: light dark;
  --page: #fbfaf7; --card: #ffffff; --ink: #1d2126; --soft: #5b6470; --line: #d9d6ce;
  --good: #1c6b3c; --good-back: #e1f2e7; --pin: #145f78; --pin-back: #def0f5;
  --bad: #a11c24; --bad-back: #fbe4e3; --odd: #775200; --odd-back: #faeccb;
  --link: #1d4f9c; --code: #f2f0ea; --plus: #dff3e3; --minus: #fbe3e3;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15181c; --card: #1d2126; --ink: #e6e4df; --soft: #a0a8b2; --line: #383e46;
    --good: #84d6a1; --good-back: #1b3a28; --pin: #84cfe6; --pin-back: #16343e;
    --bad: #ff9c97; --bad-back: #4a2022; --odd: #f0c569; --odd-back: #41330f;
    --link: #93bdff; --code: #14171a; --plus: #1c3b27; --minus: #4a2325;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-padding-top: 1rem; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
main, header { max-width: 76rem; margin: 0 auto; padding: 0 1rem; }
main { padding-bottom: 4rem; }
h1 { font-size: 1.6rem; margin: 1.6rem 0 .2rem; letter-spacing: -.01em; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: .95rem; margin: 1.4rem 0 .4rem; }
h4 { font-size: .85rem; margin: .8rem 0 .2rem; color: var(--soft); font-weight: 600; }
p { margin: .3rem 0 .6rem; max-width: 68ch; }
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
code, pre, .mono { font-family: ui-monospace, "DejaVu Sans Mono", monospace;
  font-size: .8125rem; }
pre { background: var(--code); border-radius: 6px; padding: .6rem .8rem;
  margin: .3rem 0; overflow-x: auto; line-height: 1.45; }
pre .plus { background: var(--plus); display: block; }
pre .minus { background: var(--minus); display: block; }
.soft { color: var(--soft); }
.totals { display: flex; flex-wrap: wrap; gap: .4rem 2.2rem; margin: 1rem 0 0;
  padding: 0; list-style: none; }
.totals b { display: block; font-size: 1.35rem; line-height: 1.2;
  font-variant-numeric: tabular-nums; }
.totals span { color: var(--soft); font-size: .875rem; }
.badge { display: inline-block; padding: .05rem .55rem; border-radius: 1rem;
  font-size: .8125rem; font-weight: 600; white-space: nowrap; }
.proven, .holds { color: var(--good); background: var(--good-back); }
.pinned { color: var(--pin); background: var(--pin-back); }
.law, .order, .unexplored { color: var(--bad); background: var(--bad-back); }
.nondeterminism, .cut-short { color: var(--odd); background: var(--odd-back); }
.filter { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center;
  margin: .6rem 0; }
.filter input[type=search] { font: inherit; padding: .35rem .6rem; width: 18rem;
  max-width: 100%; color: inherit; background: var(--card);
  border: 1px solid var(--line); border-radius: 6px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; background: var(--card);
  border: 1px solid var(--line); }
th, td { text-align: left; padding: .42rem .7rem; border-top: 1px solid var(--line);
  vertical-align: baseline; }
thead th { border-top: 0; font-size: .8125rem; color: var(--soft); font-weight: 600; }
tbody th { font-weight: 400; overflow-wrap: anywhere; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.group th { font-weight: 600; background: var(--code); font-size: .875rem; }
details.scenario { background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; margin: .7rem 0; }
details.scenario > summary { padding: .65rem .9rem; cursor: pointer; }
details.scenario > summary .name { font-weight: 600; overflow-wrap: anywhere;
  margin-right: .5rem; }
details.scenario > .body { padding: 0 .9rem 1rem; border-top: 1px solid var(--line); }
ol.steps { margin: .3rem 0; padding-left: 2.2rem; }
ol.steps li { overflow-wrap: anywhere; }
ul.plain { margin: .3rem 0; padding-left: 1.2rem; max-width: 72ch; }
.violation { border-left: 4px solid var(--bad); padding: .1rem 0 .1rem .9rem;
  margin: 1rem 0; }
.command { display: flex; gap: .6rem; align-items: center; flex-wrap: wrap; }
button { font: inherit; font-size: .8125rem; padding: .15rem .6rem; cursor: pointer;
  color: inherit; background: var(--code); border: 1px solid var(--line);
  border-radius: 6px; }
details.state { border-top: 1px solid var(--line); }
details.state > summary { cursor: pointer; padding: .3rem .1rem; }
details.state > .body { padding: 0 0 .8rem 1.1rem; }
details.state:target > summary { background: var(--pin-back); }
svg { display: block; max-width: none; margin: .4rem auto; }
svg .transition { stroke: var(--line); stroke-width: 1.2; }
svg .transition.bad { stroke: var(--bad); stroke-width: 2.4; }
svg .transition.near { stroke: var(--link); stroke-width: 2; }
svg .node rect { fill: var(--card); stroke: var(--soft); }
svg .node text { fill: var(--ink); text-anchor: middle;
  font: 12px ui-monospace, "DejaVu Sans Mono", monospace; }
svg .node:hover rect, svg .node:focus rect { fill: var(--pin-back);
  stroke: var(--link); stroke-width: 2; }
svg .node.bad rect { stroke: var(--bad); stroke-width: 2; }
svg .fails { fill: var(--odd); }
@media (max-width: 40rem) {
  .wide { display: none; }
  th, td { padding: .4rem .5rem; }
  main, header { padding: 0 .7rem; }
  main { padding-bottom: 3rem; }
}
@media print {
  .filter, button { display: none; }
}
"""

SCRIPT = """
(function () {
  var rows = document.querySelectorAll('[data-search]');
  var search = document.getElementById('search');
  var failed = document.getElementById('failed');
  var shown = document.getElementById('shown');
  function filter() {
    var words = search.value.toLowerCase().split(/\\s+/);
    var count = 0;
    rows.forEach(function (row) {
      var text = row.dataset.search;
      var fits = words.every(function (word) { return text.indexOf(word) >= 0; });
      row.hidden = !fits || (failed.checked && row.dataset.passed === 'yes');
      if (!row.hidden && row.tagName === 'TR') { count += 1; }
    });
    document.querySelectorAll('tr.group').forEach(function (group) {
      var next = group.nextElementSibling;
      group.hidden = true;
      while (next && !next.classList.contains('group')) {
        if (!next.hidden) { group.hidden = false; }
        next = next.nextElementSibling;
      }
    });
    shown.textContent = count + ' shown';
  }
  search.addEventListener('input', filter);
  failed.addEventListener('change', filter);
  document.querySelector('.filter').hidden = false;
  function reveal() {
    var target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) { return; }
    for (var node = target; node; node = node.parentElement) {
      if (node.tagName === 'DETAILS') { node.open = true; }
    }
    var summary = target.querySelector('summary');
    if (summary) { summary.focus({ preventScroll: true }); }
    target.scrollIntoView();
  }
  window.addEventListener('hashchange', reveal);
  document.addEventListener('click', function (event) {
    var link = event.target.closest('a[href^="#"]');
    if (link && link.getAttribute('href') === location.hash) { reveal(); }
    if (event.target.matches('button[data-copy]') && navigator.clipboard) {
      navigator.clipboard.writeText(event.target.dataset.copy).then(function () {
        event.target.textContent = 'copied';
      });
    }
  });
  function near(event) {
    var node = event.target.closest && event.target.closest('a[data-state]');
    document.querySelectorAll('.transition.near').forEach(function (transition) {
      transition.classList.remove('near');
    });
    if (!node) { return; }
    var id = node.dataset.state;
    node.ownerSVGElement.querySelectorAll('.transition').forEach(function (transition) {
      if (transition.dataset.a === id || transition.dataset.b === id) {
        transition.classList.add('near');
      }
    });
  }
  document.addEventListener('mouseover', near);
  document.addEventListener('focusin', near);
  reveal();
}());
"""


POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def write(
    folder: Path, reports: Sequence[Report], unexplored: Sequence[Unexplored] = ()
) -> Path:
    """Write `index.html` and `report.json` into the folder; return the page's path.

    Each file is replaced as a whole, after both are written. Text that UTF-8 cannot
    encode (half of a surrogate pair) is written as its escape.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "report.json": document(reports, unexplored),
        "index.html": page(reports, unexplored),
    }
    pending = {name: folder / f"{name}.new" for name in texts}
    try:
        for name, text in texts.items():
            pending[name].write_text(text, "utf-8", "backslashreplace")
        for name, written in pending.items():
            os.replace(written, folder / name)
    finally:
        for written in pending.values():
            written.unlink(missing_ok=True)
    return folder / "index.html"


def page(reports: Sequence[Report], unexplored: Sequence[Unexplored] = ()) -> str:
    """Return the page as text."""
    allowance = Allowance()
    anchors = [f"s{number}" for number in range(1, len(reports) + 1)]
    sections = "".join(
        section(report, anchor, allowance)
        for report, anchor in zip(reports, anchors, strict=True)
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>everyorder: {plural(len(reports), 'scenario')}</title>"
        f"<style>{CSS}</style></head><body>"
        f"{_header(reports, unexplored)}<main>{_unexplored(unexplored)}"
        f"{_filter()}{_table(reports, anchors)}{_notes(reports)}"
        f"<h2>Scenarios</h2>{sections}</main>"
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _header(reports: Sequence[Report], unexplored: Sequence[Unexplored]) -> str:
    explorations = [report.exploration for report in reports]
    failed = sum(each.failed for each in unexplored)
    failed += sum(not report.passed for report in reports)
    number = len(reports) + len(unexplored)
    totals = (
        (number, "scenario" if number == 1 else "scenarios"),
        (failed, "failed"),
        (sum(report.verdict == "proven" for report in reports), "proven, any length"),
        (sum(len(each.states) for each in explorations), "states"),
        (
            sum(each.executed.transitions for each in explorations),
            "transitions executed",
        ),
    )
    items = "".join(
        f"<li><b>{count:,}</b><span>{name}</span></li>" for count, name in totals
    )
    return (
        "<header><h1>everyorder</h1><p>Does the order in which things are registered "
        "and removed make a difference? Each scenario below was executed step by step; "
        "its guarantee says for which orders the answer holds.</p>"
        f'<ul class="totals">{items}</ul></header>'
    )


def _unexplored(unexplored: Sequence[Unexplored]) -> str:
    if not unexplored:
        return ""
    parts = "".join(
        '<div class="violation"><p>'
        f'<span class="badge {"unexplored" if each.failed else "cut-short"}">'
        f"{each.sentence}</span> "
        f"{escape(each.scenario)}</p>"
        f'<pre tabindex="0">{escape(each.render())}</pre></div>'
        for each in unexplored
    )
    return f"<h2>Not explored</h2>{parts}"


def _filter() -> str:
    return (
        '<h2>Overview</h2><div class="filter" role="search" hidden>'
        '<input type="search" id="search" placeholder="name, verdict or strategy" '
        'aria-label="Filter scenarios">'
        '<label><input type="checkbox" id="failed"> failed only</label>'
        '<span class="soft" id="shown" role="status"></span></div>'
    )


def _table(reports: Sequence[Report], anchors: Sequence[str]) -> str:
    columns = (
        ("Scenario", ""),
        ("Verdict", ""),
        ("Steps", "number wide"),
        ("States", "number"),
        ("Transitions", "number wide"),
        ("Strategy", "wide"),
        ("Guarantee", "wide"),
        ("Time", "number wide"),
    )
    head = "".join(
        f'<th scope="col"{_class(kind)}>{name}</th>' for name, kind in columns
    )
    rows = []
    group = ""
    for report, anchor in zip(reports, anchors, strict=True):
        file, _, name = report.scenario.rpartition("/")
        if file != group:
            group = file
            text = escape(file.removeprefix(COMMON))
            rows.append(
                f'<tr class="group"><th scope="rowgroup" colspan="8">{text}</th></tr>'
            )
        exploration = report.exploration
        cells = (
            badge(report),
            str(len(report.steps)),
            f"{len(exploration.states):,}",
            f"{exploration.executed.transitions:,}",
            escape(exploration.strategy.replace("+", " + ")),
            escape(short_guarantee(report)),
            duration(exploration.seconds),
        )
        data = "".join(
            f"<td{_class(kind)}>{cell}</td>"
            for cell, (_, kind) in zip(cells, columns[1:], strict=True)
        )
        rows.append(
            f"<tr {search_attributes(report)}>"
            f'<th scope="row"><a href="#{anchor}">{escape(name)}</a></th>{data}</tr>'
        )
    return (
        '<div class="scroll"><table><thead><tr>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _notes(reports: Sequence[Report]) -> str:
    """Return the notes below the table."""
    items = "".join(f"<li>{escape(text)}</li>" for text in note_texts(reports))
    return f'<ul class="plain soft">{items}</ul>' if items else ""


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def section(report: Report, anchor: str, allowance: Allowance) -> str:
    """Return the section of a scenario, folded unless it failed."""
    exploration = report.exploration
    facts = (
        f"{plural(len(report.steps), 'step')}, "
        f"{plural(len(exploration.states), 'state')}, "
        f"{short_guarantee(report) if report.passed else 'no guarantee'}"
    )
    return (
        f'<details class="scenario" id="{anchor}"{"" if report.passed else " open"} '
        f"{search_attributes(report)}>"
        f'<summary><span class="name">{escape(report.scenario)}</span> '
        f'{badge(report)} <span class="soft">{facts}</span></summary>'
        f'<div class="body"><p>{escape(_sentence(report))}</p>'
        f"{''.join(_violation(report, each) for each in exploration.violations)}"
        f"{_steps(report)}{_claims(report)}{_lattice(report, anchor)}"
        f"<h3>States</h3>{states_html(report, anchor, allowance)}</div></details>"
    )


def badge(report: Report) -> str:
    """Return the verdict as a coloured word."""
    kind = report.verdict.replace(" ", "-")
    star = "*" if report.assumes else ""
    return f'<span class="badge {kind}">{report.verdict}{star}</span>'


def search_attributes(report: Report) -> str:
    """Return the attributes that the filter searches."""
    text = f"{report.scenario} {report.verdict} {report.exploration.strategy}".lower()
    passed = "yes" if report.passed else "no"
    return f'data-search="{escape(text)}" data-passed="{passed}"'


def _sentence(report: Report) -> str:
    text = sentence(report).removeprefix(f"{report.verdict}: ")
    return f"{text[0].upper()}{text[1:]}."


def _violation(report: Report, violation: Violation) -> str:
    lines = escape("\n".join(report.violation_lines(violation)))
    where = report.state_name(violation.state)
    head, *rest = (
        *explanation(violation),
        *raised_lines(report, violation),
        *recurrence_lines(violation),
    )
    square = ""
    if violation.square is not None:
        text = square_sentence(report, violation.square)
        square = f"<p>Failing square: {escape(text)}.</p>"
    other = other_history_lines(report, violation)
    second_history = (
        f'<pre tabindex="0">{escape(chr(10).join(other))}</pre>' if other else ""
    )
    commands = "".join(
        f'<p class="command"><code>{escape(command)}</code>'
        f'<button type="button" data-copy="{escape(command)}">copy</button></p>'
        for command in replay_commands(report, violation)
    )
    detail = f'<pre tabindex="0">{_diff(rest)}</pre>' if rest else ""
    return (
        f'<div class="violation"><h3>{escape(violation.claim)}</h3>'
        f"<p>At <code>{escape(where)}</code>, "
        f"{escape(extent(violation, len(violation.shown)))}:</p>"
        f'<pre tabindex="0">{lines}</pre>{square}'
        f"{second_history}<h4>{escape(head)}</h4>{detail}{commands}</div>"
    )


def _diff(lines: Iterable[str]) -> str:
    """Return the lines of a diff as HTML; added and removed ones are blocks."""
    parts = []
    for line in lines:
        text = escape(line.removeprefix("    "))
        kind = {"+": "plus", "-": "minus"}.get(text[:1])
        parts.append(f'<span class="{kind}">{text}</span>' if kind else f"{text}\n")
    return "".join(parts).rstrip("\n")


def _steps(report: Report) -> str:
    parts = [f"<h3>Steps</h3>{_list(report.steps)}"]
    if report.uses:
        parts.append(f"<h3>Uses</h3>{_list(report.uses)}")
    return "".join(parts)


def _list(texts: Iterable[str]) -> str:
    items = "".join(f"<li><code>{escape(text)}</code></li>" for text in texts)
    return f'<ol class="steps">{items}</ol>'


def _claims(report: Report) -> str:
    parts = []
    for title, lines in facts(report):
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        if items:
            title = title.capitalize()
            parts.append(f'<h3>{title}</h3><ul class="plain">{items}</ul>')
    return (
        f'{"".join(parts)}<p class="soft">Executed: {escape(counts_text(report))}.</p>'
    )


def _lattice(report: Report, anchor: str) -> str:
    drawing = draw(report, lambda state: state_id(anchor, state))
    if not drawing:
        return ""
    legend = "A line is one step; each state links to its observation."
    if report.exploration.failures:
        legend += " A dot marks a state at which steps fail."
    if any(each.square for each in report.exploration.violations):
        legend += " The failing square is drawn in red."
    return (
        '<h3>Lattice</h3><div class="scroll" role="region" tabindex="0" '
        f'aria-label="lattice of states">{drawing}</div>'
        f'<p class="soft">{legend}</p>'
    )


FORMAT = 3


def document(reports: Sequence[Report], unexplored: Sequence[Unexplored] = ()) -> str:
    """Return the document as text, keys in a fixed order, ending with a newline."""
    value = document_data(reports, unexplored)
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def document_data(
    reports: Sequence[Report], unexplored: Sequence[Unexplored] = ()
) -> dict[str, Any]:
    """Return the document as JSON data."""
    return {
        "format": FORMAT,
        "scenarios": [_scenario_data(report) for report in reports],
        "unexplored": [each.data() for each in unexplored],
    }


def _scenario_data(report: Report) -> dict[str, Any]:
    exploration = report.exploration
    executed = exploration.executed
    return {
        "scenario": report.scenario,
        "digest": report.digest,
        "verdict": report.verdict,
        "passed": report.passed,
        "steps": report.steps,
        "uses": report.uses,
        "order_dependent": report.order_dependent,
        "ordered": [
            [report.steps[one], report.steps[two]] for one, two in report.pairs
        ],
        "strategy": exploration.strategy,
        "guarantee": exploration.guarantee,
        "assumptions": exploration.assumptions,
        "assumed": report.assumes,
        "open": report.bounds,
        "skipped": exploration.skipped,
        "typos": typo_lines(report),
        "vacuous": vacuity_lines(report),
        "proven": exploration.proven,
        "closure": None
        if exploration.closure is None
        else {
            name: getattr(exploration.closure, name)
            for name in type(exploration.closure).__slots__
        },
        "spent": dict(exploration.spent),
        "complete": exploration.complete,
        "planned": exploration.planned,
        "seconds": round(exploration.seconds, 6),
        "states": len(exploration.states),
        "failing": len(exploration.failures),
        "refused": len(exploration.refusals),
        "executed": {
            name: getattr(executed, name) for name in type(executed).__slots__
        },
        "violations": [
            _violation_data(report, each) for each in exploration.violations
        ],
    }


def _violation_data(report: Report, violation: Violation) -> dict[str, Any]:
    square = violation.square
    return {
        "kind": violation.kind,
        "state": report.state_name(violation.state),
        "lines": report.violation_lines(violation),
        "other": None if violation.other is None else report.other_lines(violation),
        "shortest": violation.shortest is not None,
        "proven_shortest": violation.proven_shortest,
        "square": None if square is None else square_sentence(report, square),
        "difference": explanation(violation, whole=True),
        "raised": raised_lines(report, violation),
        "paths": violation.paths,
        "replayed": violation.replayed,
        "frequency": violation.frequency,
        "more": violation.more,
        "replay_id": report.replay_id(violation),
    }
