import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise

from harness.engine.result import Square
from harness.report.states import draw, layout, state_id
from tests.report.samples import ORDER, ORDER_VIOLATION, PINNED, PROVEN, cube

SVG = "{http://www.w3.org/2000/svg}"


def drawing(report: object = PROVEN) -> ElementTree.Element:
    text = draw(report, lambda state: state_id("s1", state))  # type: ignore[arg-type]  # always a Report
    return ElementTree.fromstring(text.replace("<svg ", f'<svg xmlns="{SVG[1:-1]}" '))


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
    assert draw(six, lambda state: "s") != ""
    assert draw(seven, lambda state: "s") == ""


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
