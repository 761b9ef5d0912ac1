"""The states of a scenario on the page: drawn, and dumped."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Hashable
from dataclasses import replace
from itertools import pairwise

from everyorder.harness.engine.protocol import State
from everyorder.harness.engine.result import Square
from everyorder.harness.report import state_lattice as states
from everyorder.harness.report.page import page
from everyorder.harness.report.state_lattice import (
    Allowance,
    lattice,
    layout,
    listing,
)
from everyorder.harness.report.verdict import Report
from tests.report.samples import ORDER, ORDER_VIOLATION, PINNED, PROVEN, cube

SVG = "{http://www.w3.org/2000/svg}"


def drawing(report: Report = PROVEN) -> ElementTree.Element:
    [text] = re.findall("<svg .*?</svg>", page([report]), re.DOTALL)
    return ElementTree.fromstring(text.replace("<svg ", f'<svg xmlns="{SVG[1:-1]}" '))


def states_html(report: Report) -> str:
    """Return the states of one scenario, without the line breaks between elements."""
    html = page([report]).partition("<h3>States</h3>")[2]
    return re.sub(">\n", ">", html).replace("&#34;", "&quot;")


def test_every_state_is_a_link_and_every_step_a_line() -> None:
    svg = drawing()
    links = [link.get("href") for link in svg.findall(f"{SVG}a")]
    assert links == [
        *("#s1-0", "#s1-1", "#s1-2", "#s1-3"),
        *("#s1-1.2", "#s1-1.3", "#s1-2.3", "#s1-1.2.3"),
    ]
    lines = {(x.get("data-a"), x.get("data-b")) for x in svg.findall(f"{SVG}line")}
    assert len(lines) == 12
    assert ("s1-1.3", "s1-1.2.3") in lines
    assert svg.get("aria-label") == (
        "8 states of scenarios/test_composites/two_kernels, by size"
    )


def test_states_with_failing_steps_have_a_dot() -> None:
    dotted = [
        link.get("data-state")
        for link in drawing().findall(f"{SVG}a")
        if link.find(f"{SVG}circle") is not None
    ]
    assert dotted == ["s1-2"]


def test_the_failing_square_is_marked() -> None:
    bad = {
        (line.get("data-a"), line.get("data-b"))
        for line in drawing(ORDER).findall(f"{SVG}line")
        if line.get("class") == "transition bad"
    }
    assert bad == {
        ("s1-0", "s1-2"),
        ("s1-0", "s1-3"),
        ("s1-2", "s1-2.3"),
        ("s1-3", "s1-2.3"),
    }


def test_ordered_states_stand_apart() -> None:
    svg = drawing(PINNED)
    labels = [text.text for text in svg.iter(f"{SVG}text")]
    assert labels == ["{}", "1", "2", "1→2", "2→1"]
    lines = [(x.get("data-a"), x.get("data-b")) for x in svg.findall(f"{SVG}line")]
    assert ("s1-1", "s1-2.1") in lines


def test_orders_of_a_pinned_pair_stand_apart_and_are_joined() -> None:
    states = dict.fromkeys(
        ((), (0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (2, 0), (0, 1, 2), (1, 2, 0)),
        "",
    )
    exploration = replace(
        ORDER.exploration,
        states=states,
        violations=(replace(ORDER_VIOLATION, square=Square((), 1, 2)),),
    )
    svg = drawing(replace(ORDER, exploration=exploration, pairs=((0, 2),)))
    joined = {
        (line.get("data-a"), line.get("data-b")): line.get("class")
        for line in svg.findall(f"{SVG}line")
    }
    bad = {ends for ends, kind in joined.items() if kind == "transition bad"}
    # Of the steps 1, 2 and 3 the order of 1 and 3 counts.
    assert joined.keys() == {
        *(("s1-0", "s1-1"), ("s1-0", "s1-2"), ("s1-0", "s1-3")),
        *(("s1-1", "s1-1.2"), ("s1-2", "s1-1.2"), ("s1-2", "s1-2.3")),
        *(("s1-3", "s1-2.3"), ("s1-1", "s1-1.3"), ("s1-3", "s1-1.3")),
        *(("s1-3", "s1-3.1"), ("s1-1", "s1-3.1")),
        *(("s1-1.2", "s1-1.2.3"), ("s1-1.3", "s1-1.2.3"), ("s1-2.3", "s1-1.2.3")),
        *(("s1-3.1", "s1-2.3.1"), ("s1-2.3", "s1-2.3.1"), ("s1-1.2", "s1-2.3.1")),
    }
    assert bad == {
        ("s1-0", "s1-2"),
        ("s1-0", "s1-3"),
        ("s1-2", "s1-2.3"),
        ("s1-3", "s1-2.3"),
    }


def test_states_at_which_an_undo_is_refused_have_a_dot() -> None:
    exploration = replace(PROVEN.exploration, failures={}, refusals={((0, 1), 1): "no"})
    dotted = [
        link.get("data-state")
        for link in drawing(replace(PROVEN, exploration=exploration)).findall(f"{SVG}a")
        if link.find(f"{SVG}circle") is not None
    ]
    assert dotted == ["s1-1.2"]


def test_nothing_is_drawn_of_more_than_64_states() -> None:
    six = replace(PROVEN, exploration=replace(PROVEN.exploration, states=cube(6)))
    seven = replace(PROVEN, exploration=replace(PROVEN.exploration, states=cube(7)))
    assert lattice(six, "s1") is not None
    assert lattice(seven, "s1") is None
    assert "<svg" not in page([seven])


def test_boxes_of_a_row_do_not_overlap() -> None:
    states = (*cube(6), (10, 11), (9, 10, 11))
    nodes, width, height = layout(states, PROVEN.state_name)
    rows: dict[float, list[tuple[float, float]]] = {}
    for node in nodes.values():
        rows.setdefault(node.y, []).append((node.x, node.width))
    assert len(rows) == 7
    for row in rows.values():
        row.sort()
        assert row[0][0] - row[0][1] / 2 >= 0
        assert row[-1][0] + row[-1][1] / 2 <= width
        for (x, w), (other, v) in pairwise(row):
            assert x + w / 2 < other - v / 2
    assert max(rows) < height
    assert nodes[(10, 11)].label == "11 12"


def test_a_lattice_of_nothing() -> None:
    assert layout((), PROVEN.state_name)[0] == {}


def ids(html: str) -> list[str]:
    return re.findall(r'<details class="state" id="s1-([\d.]+)"', html)


def test_every_state_with_the_ways_on() -> None:
    html = states_html(PROVEN)
    assert ids(html) == ["0", "1", "2", "3", "1.2", "1.3", "2.3", "1.2.3"]
    at = html.index('id="s1-1.3"')
    assert html[at : html.index("</details>", at)] == (
        'id="s1-1.3"><summary><code>{1 3}</code></summary><div class="body">'
        '<p class="soft">without 1: <a href="#s1-3"><code>{3}</code></a>, '
        'with 2: <a href="#s1-1.2.3"><code>{1 2 3}</code></a>, '
        'without 3: <a href="#s1-1"><code>{1}</code></a></p>'
        '<h4>state</h4><pre tabindex="0">name: demo::add\n'
        "schema: demo::add(Tensor x, Tensor y) -&gt; Tensor\n</pre>"
        '<h4>table</h4><pre tabindex="0">'
        "CUDA..Meta: any_add (math kernel) &lt;tag&gt;\n</pre>"
        '<h4>calls</h4><pre tabindex="0">cpu: MissingKernel\n</pre></div>'
    )


def test_failing_steps_stand_at_their_state() -> None:
    html = states_html(PROVEN)
    assert '<code>{2}</code> <span class="soft">1 step fails</span>' in html
    assert (
        "<h4>step 3 fails: <code>impl(&quot;demo::add&quot;, any_add, "
        "&quot;CompositeImplicitAutograd&quot;)</code></h4>"
        '<pre tabindex="0">error: NoSuchOperator\noperator: demo::add</pre>'
    ) in html


def test_a_refused_undo_stands_at_its_state() -> None:
    refused: dict[tuple[State, int], Hashable] = {((0, 1), 1): (("error", "Held"),)}
    exploration = replace(PROVEN.exploration, refusals=refused)
    html = states_html(replace(PROVEN, exploration=exploration))
    assert '<code>{1 2}</code> <span class="soft">1 step fails</span>' in html
    assert (
        "<h4>step 2 is not undone: <code>step_2.close()</code></h4>"
        '<pre tabindex="0">error: Held</pre>'
    ) in html


def test_a_step_that_is_done_again_fails_where_it_is_active() -> None:
    failures: dict[tuple[State, int], Hashable] = {((0, 1), 1): (("error", "There"),)}
    exploration = replace(PROVEN.exploration, failures=failures)
    report = replace(PROVEN, exploration=exploration, again=frozenset({1}))
    assert (
        "<h4>step 2 fails: <code>impl(&quot;demo::add&quot;, cpu_add, &quot;CPU&quot;)"
        '</code></h4><pre tabindex="0">error: There</pre>'
    ) in states_html(report)


def test_the_ways_between_orders_of_a_pinned_pair() -> None:
    states = dict.fromkeys(((), (0,), (1,), (2,), (0, 2), (2, 0), (1, 2, 0)), "same")
    exploration = replace(PROVEN.exploration, states=states, failures={})
    report = replace(PROVEN, exploration=exploration, pairs=((0, 2),))
    html = states_html(report)
    assert ids(html) == ["0", "1", "2", "3", "1.3", "3.1", "2.3.1"]
    at = html.index('id="s1-2.3.1"')
    # Where step 2 stands among the two does not matter.
    assert html[at : html.index("</p>", at)] == (
        'id="s1-2.3.1"><summary><code>2 then 3 then 1</code></summary><div '
        'class="body"><p class="soft">without 2: <a href="#s1-3.1"><code>3 then 1'
        "</code></a>"
    )


def test_several_failing_steps_are_counted() -> None:
    failures: dict[tuple[State, int], str] = {((0,), 1): "no", ((0,), 2): "no"}
    exploration = replace(PROVEN.exploration, failures=failures)
    html = states_html(replace(PROVEN, exploration=exploration))
    assert "2 steps fail</span>" in html
    assert '<pre tabindex="0">no</pre>' in html


def test_equal_bodies_are_written_once() -> None:
    states = dict.fromkeys(cube(3), "same text")
    exploration = replace(PROVEN.exploration, states=states, failures={})
    html = states_html(replace(PROVEN, exploration=exploration))
    assert html.count("same text") == 1
    assert html.count('<p>as <a href="#s1-0"><code>{}</code></a></p>') == 7


def test_what_does_not_fit_is_counted() -> None:
    listed = listing(PROVEN, "s1", Allowance(200))
    assert [entry.link.id for entry in listed.entries] == ["s1-0", "s1-1"]
    assert (listed.omitted, listed.command) == (
        "6",
        "everyorder show scenarios/test_composites/two_kernels --state 1,2",
    )


def test_only_corners_of_many_states() -> None:
    exploration = replace(PROVEN.exploration, states=cube(7), failures={})
    report = replace(PROVEN, steps=("step",) * 7, exploration=exploration)
    html = states_html(report)
    assert len(ids(html)) == 1 + 7 + 21 + 1
    assert ids(html)[-1] == "1.2.3.4.5.6.7"
    assert (
        "98 more states were explored and are not on this page; <code>everyorder show "
        "scenarios/test_composites/two_kernels --state 1,2</code> prints one."
    ) in html
    assert 'href="#s1-1.2.3"' not in html


def test_an_allowance_is_used_up_by_what_is_written() -> None:
    allowance = Allowance(12)
    assert allowance.take([("a", "\N{GREEK SMALL LETTER BETA}<")])
    assert not allowance.take([("", "\u202e")])
    assert allowance.left == 5
    assert Allowance().left == states.ALLOWED < 10_000_000
