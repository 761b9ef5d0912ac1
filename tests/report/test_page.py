"""All reports as a page, and as JSON."""

import json
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Hashable
from dataclasses import asdict, replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markupsafe import Markup

from everyorder.harness.engine.protocol import Caveat, State
from everyorder.harness.engine.result import KINDS, Closure
from everyorder.harness.report.evidence import other_history_lines, replay_commands
from everyorder.harness.report.page import document, page, write
from everyorder.harness.report.verdict import Unexplored
from tests.report.samples import (
    ALL,
    GRAPH,
    LAW,
    ORDER,
    ORDER_VIOLATION,
    PROVEN,
    STEPS,
    VACUOUS,
    broken,
    cube,
    violated,
)

BROKEN = Unexplored("scenarios/test_x.py", "tests/scenarios/test_x.py:3", "<bad>")

VOID = {"meta", "input"}


class Reader(HTMLParser):
    """Checks that tags nest, and keeps ids, links and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.outside: list[str] = []
        self.texts: list[str] = []
        self.opened: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.add(tag)
        self.attributes.update(found)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in found:
            self.ids.append(str(found["id"]))
        for name in ("href", "src", "action", "data", "poster", "srcset"):
            value = found.get(name)
            if value is not None:
                (self.links if value.startswith("#") else self.outside).append(value)
        if tag == "details" and "open" in found:
            self.opened.append(str(found["id"]))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("rect", "circle")
        self.attributes.update(dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        # Elements of blocks are on lines of their own.
        if data.strip() or self.open[-1:] == ["pre"]:
            self.texts.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def whole() -> Reader:
    return read(page(ALL, (BROKEN,)))


def test_ids_are_unique_and_links_lead_somewhere(whole: Reader) -> None:
    assert len(set(whole.ids)) == len(whole.ids)
    assert {link[1:] for link in whole.links} <= set(whole.ids)
    assert len(whole.links) > 100


def test_nothing_is_loaded_from_outside(whole: Reader) -> None:
    html = page(ALL, (BROKEN,))
    assert whole.outside == []
    assert "default-src 'none'" in html
    assert re.findall(r"(?:https?:)?//[a-z]|@import|url\(", html) == []


def test_what_failed_is_unfolded(whole: Reader) -> None:
    failed = [f"s{i}" for i, report in enumerate(ALL, 1) if not report.passed]
    assert whole.opened == failed == ["s4", "s5", "s6", "s7"]


def test_texts_are_escaped(whole: Reader) -> None:
    assert "tests/scenarios/test_x.py:3: <bad>" in whole.texts
    assert any("<tag>" in text for text in whole.texts)


# Texts of steps, states and errors, and what a reader sees of them.
HOSTILE = {
    "</pre></code><script>alert(1)</script>": None,
    "\"'><img src=x onerror=alert(1)>": None,
    "{{ 7 * 7 }}{% raw %}": None,
    "&lt;b&gt; &amp;": None,
    "\u202egnirts\u2066": "\\u202egnirts\\u2066",
    "\x1b[31m\x00\r": "\\x1b[31m\\x00\\r",
    "\udcff": "\\udcff",
    "\n\nafter two line breaks": None,
    "long" * 25_000: None,
}


@pytest.mark.parametrize("kind", [str, Markup])
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_every_text_is_shown_as_text(text: str, kind: type[str], whole: Reader) -> None:
    shown = HOSTILE[text] or text
    bad = kind(text)
    violation = replace(
        ORDER_VIOLATION, expected=(("a", bad),), found=(("a", kind(f"{text}!")),)
    )
    exploration = replace(
        ORDER.exploration,
        states=dict.fromkeys(cube(2), ((bad, bad),)),
        failures={((0,), 1): ((bad, bad),)},
        violations=(violation,),
    )
    report = replace(
        ORDER,
        scenario=f"a/{text}",
        steps=(bad, *STEPS[1:]),
        uses=(bad,),
        exploration=exploration,
    )
    unexplored = Unexplored(bad, bad, bad, stack=(bad,))
    html = page([report], [unexplored])
    reader = read(html)
    assert reader.tags <= whole.tags
    assert reader.attributes <= whole.attributes
    assert html.replace("\n", "").isprintable()
    # The browser drops the first line break of a `pre` element.
    pre = f"\n{shown}" if shown.startswith("\n") else shown
    # A step, a use, the title and the text of a state.
    assert reader.texts.count(shown) >= 3
    assert reader.texts.count(pre) >= 1
    assert f"a/{shown}" in reader.texts


def test_the_policy_allows_the_style_and_the_script_only(whole: Reader) -> None:
    html = page(ALL, (BROKEN,))
    [policy] = re.findall('http-equiv="Content-Security-Policy" content="(.*?)"', html)
    digests = {}
    for name in ("style", "script"):
        [text] = re.findall(f"<{name}>(.*?)</{name}>", html, re.DOTALL)
        digests[name] = b64encode(sha256(text.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests['style']}'; "
        f"script-src 'sha256-{digests['script']}'; base-uri 'none'; form-action 'none'"
    )
    # The policy forbids styles and handlers in attributes.
    assert not {"style", "onclick", "onerror", "onload"} & whole.attributes


def test_jinja_is_imported_when_a_page_is_written() -> None:
    program = (
        "import sys\n"
        "from everyorder.harness.report import page\n"
        "before = 'jinja2' in sys.modules\n"
        "page([])\n"
        "print(before, 'jinja2' in sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "False True\n"


def test_totals(whole: Reader) -> None:
    at = whole.texts.index("scenarios")
    assert whole.texts[at - 1 : at + 9] == [
        *("8", "scenarios", "5", "failed", "1", "proven, any length"),
        *("53", "states", "4,396", "transitions executed"),
    ]


def test_a_violation_is_told_in_full() -> None:
    texts = read(page([ORDER])).texts
    at = texts.index("the observation depends on more than the active steps")
    replay = f"everyorder replay {ORDER.replay_id(ORDER.exploration.violations[0])}"
    assert texts[at + 1 : at + 17] == [
        "At ",
        "{2 3}",
        ", after 3 operations; no shorter history of these shows it:",
        'step_3 = impl("demo::add", any_add, "CompositeImplicitAutograd")\n'
        'step_2 = impl("demo::add", cpu_add, "CPU")\ncall("demo::add", "cpu")',
        "Failing square: from {}, 2 then 3 differs from 3 then 2.",
        "difference in 'table' (- expected, + found):",
        "@@ -1,2 +1,2 @@\n",
        "-AutogradCPU: cpu_add",
        "+AutogradCPU: any_add",
        " CPU: cpu_add",
        f"{replay} scenarios/test_broken/order_matters",
        "copy",
        "Steps",
        'define("demo::add(Tensor x, Tensor y) -> Tensor")',
        'impl("demo::add", cpu_add, "CPU")',
        'impl("demo::add", any_add, "CompositeImplicitAutograd")',
    ]


def test_a_failure_claims_no_guarantee() -> None:
    assert "every operation was taken" not in page([LAW])
    assert "every finite history" in page([PROVEN])


def test_what_a_proof_assumes_stands_below_the_table() -> None:
    exploration = replace(
        PROVEN.exploration,
        closure=Closure(8, 40, 4, closed=True, unread=("registry._items",)),
    )
    texts = read(page([replace(PROVEN, exploration=exploration), ORDER])).texts
    at = texts.index(
        "* assumes: the order of registry._items is never read (two_kernels)"
    )
    assert texts[at - 1].startswith("proven: for histories of any length, in one ")
    assert texts[at + 1].startswith("skipped: kA:1 would take ")
    assert "proven*" in texts
    assert "proven" not in texts
    assert "assumes: " not in page([ORDER])


def test_every_verdict_has_its_place() -> None:
    reports = [VACUOUS, *(violated(kind) for kind in KINDS)]
    reader = read(page(reports))
    assert len(reader.opened) == len(reports)
    assert "the difference is not visible from outside" in reader.texts
    badges = re.findall(r'<span class="badge ([a-z-]+)">', page(reports))
    assert set(badges) == {
        *("vacuous", "law", "order", "unpinned", "hidden", "not-fresh"),
        "nondeterminism",
    }


def test_what_died_says_how() -> None:
    others = [
        Unexplored("s/a/exits", "a.py:1", "exit code 0", "crashed", "exit()", ("a()",)),
        Unexplored("s/a/sleeps", "", "60 s", "hung", stack=("wait() a.py:9",)),
    ]
    texts = read(page([PROVEN], others)).texts
    at = texts.index("crashed")
    assert texts[at : at + 3] == [
        "crashed",
        " s/a/exits",
        "a.py:1: exit code 0\nin\n    exit()\nafter\n    a()",
    ]
    assert "s/a/sleeps: 60 s\nstack, innermost call first:\n    wait() a.py:9" in texts


def test_what_skips_itself_did_not_fail() -> None:
    skipped = Unexplored("s/a/gpu", "a.py", "no GPU", "skipped")
    html = page([PROVEN], [skipped])
    assert '<span class="badge cut-short">skipped</span> s/a/gpu' in html
    assert "<b>0</b><span>failed</span>" in html
    assert "<b>1</b><span>failed</span>" in page(
        [PROVEN], [replace(skipped, verdict="failed")]
    )


def test_of_hidden_state_both_histories_are_on_the_page() -> None:
    report = violated("hidden", state=(1,), history=(1, 3), other=(0, 0, 1, 3))
    (violation,) = report.exploration.violations
    texts = read(page([report])).texts
    assert "\n".join(other_history_lines(report, violation)) in texts
    for command in replay_commands(report, violation):
        assert command in texts


def test_pages_depend_on_the_reports_only() -> None:
    assert page(ALL) == page(ALL)


def test_a_catalogue_of_large_scenarios_stays_below_ten_megabytes() -> None:
    states = {state: "x" * 200_000 + str(state) for state in cube(7)}
    exploration = replace(PROVEN.exploration, states=states, failures={})
    html = page([replace(PROVEN, exploration=exploration)] * 3)
    assert len(html.encode()) < 10_000_000
    assert "more states were explored" in html


def test_one_scenario_is_one() -> None:
    assert "<title>everyorder: 1 scenario</title>" in page([PROVEN])
    assert "<b>1</b><span>scenario</span>" in page([PROVEN])
    assert "<title>everyorder: 7 scenarios</title>" in page(ALL)


def test_a_lone_surrogate_is_written_as_its_escape(tmp_path: Path) -> None:
    odd = replace(PROVEN, steps=("add \udcff", *PROVEN.steps[1:]))
    write(tmp_path, [odd])
    assert "add \\udcff" in (tmp_path / "index.html").read_text(encoding="utf-8")
    found = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert found["scenarios"][0]["steps"][0] == "add \udcff"


def test_what_cannot_be_written_whole_is_not_written(tmp_path: Path) -> None:
    write(tmp_path, [PROVEN])
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "index.html.new").mkdir()
    with pytest.raises(OSError, match="index"):
        write(tmp_path, [ORDER])
    (tmp_path / "index.html.new").rmdir()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_files(tmp_path: Path) -> None:
    folder = tmp_path / "build" / "report"
    assert write(folder, ALL, (BROKEN,)) == folder / "index.html"
    assert (folder / "index.html").read_text() == page(ALL, (BROKEN,))
    found = json.loads((folder / "report.json").read_text())
    assert len(found["scenarios"]) == len(ALL)
    assert sorted(path.name for path in folder.iterdir()) == [
        "index.html",
        "report.json",
    ]


def test_what_passed() -> None:
    found = json.loads(document([PROVEN]))
    [scenario] = found["scenarios"]
    guarantee = scenario.pop("guarantee")
    assert guarantee.startswith(f"graph: {GRAPH}; walk:2: ")
    assert scenario == {
        "scenario": "scenarios/test_composites/two_kernels",
        "digest": "0123456789ab",
        "verdict": "proven",
        "passed": True,
        "steps": list(STEPS),
        "uses": ['call("demo::add", "cpu")'],
        "order_dependent": None,
        "ordered": [],
        "strategy": "graph+walk:2+histories:3",
        "assumptions": list(PROVEN.exploration.assumptions),
        "assumed": [],
        "open": [],
        "skipped": list(PROVEN.exploration.skipped),
        "typos": [],
        "vacuous": [],
        "proven": True,
        "closure": None,
        "spent": {},
        "complete": True,
        "planned": 628,
        "seconds": 0.0123,
        "states": 8,
        "failing": 1,
        "refused": 0,
        "executed": asdict(PROVEN.exploration.executed),
        "violations": [],
    }
    assert found["format"] == 3
    assert found["unexplored"] == []


def test_violations_and_what_was_not_explored() -> None:
    found = json.loads(document([ORDER], [Unexplored("s/a", "a.py:1", "gone")]))
    assert found["scenarios"][0]["violations"] == [
        {
            "kind": "order",
            "state": "{2 3}",
            "lines": [
                'step_3 = impl("demo::add", any_add, "CompositeImplicitAutograd")',
                'step_2 = impl("demo::add", cpu_add, "CPU")',
                'call("demo::add", "cpu")',
            ],
            "other": None,
            "shortest": True,
            "proven_shortest": True,
            "square": "from {}, 2 then 3 differs from 3 then 2",
            "difference": [
                "difference in 'table' (- expected, + found):",
                "    @@ -1,2 +1,2 @@",
                "    -AutogradCPU: cpu_add",
                "    +AutogradCPU: any_add",
                "     CPU: cpu_add",
            ],
            "raised": [],
            "paths": [],
            "replayed": 0,
            "frequency": None,
            "more": 0,
            "replay_id": ORDER.replay_id(ORDER_VIOLATION),
        }
    ]
    assert found["unexplored"] == [
        {
            "scenario": "s/a",
            "verdict": "failed",
            "where": "a.py:1",
            "reason": "gone",
            "operation": "",
            "history": [],
            "stack": [],
        }
    ]


def test_what_stands_between_states_and_a_proof() -> None:
    refused: dict[tuple[State, int], Hashable] = {((0, 1), 1): "no"}
    exploration = replace(
        PROVEN.exploration,
        closure=Closure(41, 205, 4, closed=True, unread=("registry._items",)),
        caveats=(
            Caveat("assumed", "it calls _codecs.register"),
            Caveat("assumed", "the order of a set is not read"),
        ),
        spent=(("graph", 750), ("stale", 250)),
        refusals=refused,
    )
    report = replace(PROVEN, exploration=exploration, pairs=((0, 2),))
    [scenario] = json.loads(document([report]))["scenarios"]
    assert scenario["closure"] == {
        "states": 41,
        "transitions": 205,
        "histories": 4,
        "closed": True,
        "order_read": False,
        "unread": ["registry._items"],
        "walked": 0,
    }
    assert scenario["assumed"] == [
        "the order of registry._items is never read",
        "it calls _codecs.register",
        "the order of a set is not read",
    ]
    assert (scenario["open"], scenario["proven"]) == ([], True)
    assert scenario["spent"] == {"graph": 750, "stale": 250}
    assert scenario["ordered"] == [[STEPS[0], STEPS[2]]]
    assert scenario["refused"] == 1

    caveats = (Caveat("opaque", "a Connection"), Caveat("outside", "sys.path"))
    exploration = replace(exploration, caveats=caveats, proven=False)
    report = replace(report, exploration=exploration)
    [scenario] = json.loads(document([report]))["scenarios"]
    assert (scenario["verdict"], scenario["assumed"]) == ("holds", [])
    assert scenario["open"] == ["a Connection", "sys.path"]


def test_what_is_vacuous_or_flaky() -> None:
    flaky = violated("nondeterminism", expected="a", found="b", frequency=(1, 21))
    hidden = violated(
        "hidden", paths=("a: 1 / 2",), replayed=5, history=(1, 3), other=(0, 0, 1, 3)
    )
    found = json.loads(document([VACUOUS, flaky, hidden]))["scenarios"]
    assert (found[0]["verdict"], found[0]["passed"]) == ("vacuous", False)
    assert found[0]["vacuous"][1:3] == [
        f"{STEPS[2]} raises NameError whatever is active; if that is meant, "
        "declare raises=NameError",
        'call("demo::add", "cpu") answers the same whatever is active; if '
        "that is meant, declare constant=True",
    ]
    [one], [other] = found[1]["violations"], found[2]["violations"]
    assert (one["frequency"], one["replayed"], one["paths"]) == ([1, 21], 0, [])
    assert one["difference"][-1] == "found in 1 of 21 replays of this history"
    assert (other["frequency"], other["replayed"]) == (None, 5)
    assert other["paths"] == ["a: 1 / 2"]
    assert one["other"] is None
    assert other["lines"] == [f"step_2 = {STEPS[1]}", 'call("demo::add", "cpu")']
    assert other["other"] == [
        *(f"step_1 = {STEPS[0]}", "step_1.close()"),
        *(f"step_2 = {STEPS[1]}", 'call("demo::add", "cpu")'),
    ]


def test_every_report_can_be_written() -> None:
    verdicts = [each["verdict"] for each in json.loads(document(ALL))["scenarios"]]
    assert verdicts == [report.verdict for report in ALL]


def test_what_was_found_is_whole() -> None:
    violation = replace(ORDER_VIOLATION, expected="x\n" * 99, found="y" * 9_999)
    found = json.loads(document([broken("long", violation)]))
    assert found["scenarios"][0]["violations"][0]["difference"] == [
        "difference (- expected, + found):",
        "    @@ -1,99 +1 @@",
        *["    -x"] * 99,
        f"    +{'y' * 9_999}",
    ]
