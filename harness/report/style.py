"""How the page looks and behaves: one style sheet and one small script, as text.

True only here: what the page needs besides its words.  Without the script everything
can be read; it adds the filter, the copy buttons, and that a link to a state opens what
the state is folded into.

Rules: no address of anything outside; colours only as variables, once for light and
once for dark; nothing that moves.
"""

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
