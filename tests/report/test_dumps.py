import re
from collections.abc import Hashable
from dataclasses import replace

from harness.engine.protocol import State
from harness.report import states
from harness.report.states import Allowance, states_html
from tests.report.samples import PROVEN, cube


def ids(html: str) -> list[str]:
    return re.findall(r'<details class="state" id="s1-([\d.]+)"', html)


def test_every_state_with_the_ways_on() -> None:
    html = states_html(PROVEN, "s1", Allowance())
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
    html = states_html(PROVEN, "s1", Allowance())
    assert '<code>{2}</code> <span class="soft">1 step fails</span>' in html
    assert (
        "<h4>step 3 fails: <code>impl(&quot;demo::add&quot;, any_add, "
        "&quot;CompositeImplicitAutograd&quot;)</code></h4>"
        '<pre tabindex="0">error: NoSuchOperator\noperator: demo::add</pre>'
    ) in html


def test_a_refused_undo_stands_at_its_state() -> None:
    refused: dict[tuple[State, int], Hashable] = {((0, 1), 1): (("error", "Held"),)}
    exploration = replace(PROVEN.exploration, refusals=refused)
    html = states_html(replace(PROVEN, exploration=exploration), "s1", Allowance())
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
    ) in states_html(report, "s1", Allowance())


def test_the_ways_between_orders_of_a_pinned_pair() -> None:
    states = dict.fromkeys(((), (0,), (1,), (2,), (0, 2), (2, 0), (1, 2, 0)), "same")
    exploration = replace(PROVEN.exploration, states=states, failures={})
    report = replace(PROVEN, exploration=exploration, pairs=((0, 2),))
    html = states_html(report, "s1", Allowance())
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
    html = states_html(replace(PROVEN, exploration=exploration), "s1", Allowance())
    assert "2 steps fail</span>" in html
    assert '<pre tabindex="0">no</pre>' in html


def test_equal_bodies_are_written_once() -> None:
    states = dict.fromkeys(cube(3), "same text")
    exploration = replace(PROVEN.exploration, states=states, failures={})
    html = states_html(replace(PROVEN, exploration=exploration), "s1", Allowance())
    assert html.count("same text") == 1
    assert html.count('<p>as <a href="#s1-0"><code>{}</code></a></p>') == 7


def test_what_does_not_fit_is_counted() -> None:
    html = states_html(PROVEN, "s1", Allowance(500))
    assert ids(html) == ["0", "1"]
    assert (
        "6 more states were explored and are not on this page; <code>everyorder show "
        "scenarios/test_composites/two_kernels --state 1,2</code> prints one."
    ) in html


def test_only_corners_of_many_states() -> None:
    exploration = replace(PROVEN.exploration, states=cube(7), failures={})
    report = replace(PROVEN, steps=("step",) * 7, exploration=exploration)
    html = states_html(report, "s1", Allowance())
    assert len(ids(html)) == 1 + 7 + 21 + 1
    assert ids(html)[-1] == "1.2.3.4.5.6.7"
    assert "98 more states were explored" in html
    assert 'href="#s1-1.2.3"' not in html


def test_an_allowance_is_used_up() -> None:
    allowance = Allowance(3)
    assert allowance.take("ab")
    assert not allowance.take("ab")
    assert allowance.left == 1
    assert Allowance().left == states.ALLOWED < 10_000_000
