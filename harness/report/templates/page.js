// Everything can be read without this script. It adds the filter and the copy buttons,
// opens the sections around the target of a link to a state, and marks the lines of the
// state in focus.
'use strict';
(function () {
  var rows = document.querySelectorAll('[data-search]');
  var search = document.getElementById('search');
  var failed = document.getElementById('failed');
  var shown = document.getElementById('shown');
  function filter() {
    var words = search.value.toLowerCase().split(/\s+/);
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
    if (event.target.matches('.command button') && navigator.clipboard) {
      var shownCommand = event.target.previousElementSibling.textContent;
      navigator.clipboard.writeText(shownCommand).then(function () {
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
