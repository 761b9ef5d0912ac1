import os
import re
import shlex
import signal
import subprocess
import sys
import time
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from everyorder import harness
from everyorder.harness.cli import command as exits
from everyorder.harness.tools.imports import of_imports
from tests.cli.conftest import Project, unwrapped
from tests.forking import needs_fork
from tests.processes.samples import is_alive

# So long a process may take to start, or to end, where others keep the machine busy.
PATIENCE = 120.0

HOLDS = """\
imported   sets  orders  of  verdict
───────────────────────────────────────────
1 module      3       3   3  one order each
2 modules     3       6   6  holds
3 modules     1       6   6  holds
───────────────────────────────────────────
              7      15  15  0 ms

core, red, blue: holds: the orders that were played make no difference

  played    15 orders of 15: every subset in every order; for each, a child
            forked before the modules are imported
  compared  what is raised, 1 use, and the globals of blue, core, red
  left out  the order of core.NAMES, that of the imports

7 sets of 3 modules, 15 of 15 orders: holds
"""

ORDER = """\
imported   sets  orders  of  verdict
───────────────────────────────────────────
1 module      2       2   2  one order each
2 modules     1       2   2  ORDER 1 of 1
───────────────────────────────────────────
              3       4   4  0 ms

patching, using: what these imports leave behind depends on their order

the order of patching and using makes a difference:
    import patching
    import using
and in this order:
    import using
    import patching
differences (- the first order, + the second):
    using.answer() answers
    -'patched'
    +'plain'
    using.answer
    -<same as answers.answer>
    +<function answer>
again:
    {command}

  played    4 orders of 4: every subset in every order; for each, a child forked
            before the modules are imported
  compared  what is raised, 1 use, and the globals of answers, patching, using

3 sets of 2 modules, 4 of 4 orders: 1 refuted
"""


@pytest.fixture
def modules(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Packages that have to do with each other; clocks stand still."""
    monkeypatch.setattr(
        "everyorder.harness.tools.imports.import_orders.monotonic", lambda: 0.0
    )
    monkeypatch.setattr(
        "everyorder.harness.tools.imports.import_orders.PAUSE_SECONDS", 0.0
    )
    for name, text in {
        "core": "NAMES = {}\nPLACES = {}\nclass Base:\n    pass\n",
        "red": "import core\ncore.NAMES['red'] = 1\n",
        "blue": "import core\ncore.NAMES['blue'] = 2\n",
        "first": "import core\ncore.PLACES[len(core.PLACES)] = 'first'\n",
        "second": "import core\ncore.PLACES[len(core.PLACES)] = 'second'\n",
        "answers": "def answer():\n    return 'plain'\n",
        "patching": (
            "import answers\n\n"
            "def patched():\n    return 'patched'\n\n"
            "answers.answer = patched\n"
        ),
        "using": "from answers import answer\n",
        "plain": "VALUE = 1\n",
    }.items():
        project.write(f"{name}.py", text)
    return project


def plain(text: str) -> str:
    """The text without blanks at the ends of its lines."""
    return re.sub(r" +$", "", text, flags=re.MULTILINE)


def difference(text: str) -> list[str]:
    """The lines of what differs, and the orders that it is told of."""
    return re.findall(r"^    (\S.*)$", text, re.MULTILINE)


def test_what_does_not_matter(modules: Project) -> None:
    use = ("--use", "sorted(core.NAMES)")
    result = modules.run("imports", "core", "red", "blue", *use)
    assert (plain(result.output), result.exit_code) == (HOLDS, exits.OK)


def test_modules_that_patch_each_other(modules: Project) -> None:
    """Nothing is written beside them."""
    before = sorted(modules.root.rglob("*"))
    use = ("--use", "using.answer()")
    result = modules.run("imports", "patching", "using", *use)
    command = (
        "everyorder imports --order patching,using --order using,patching "
        "--use 'using.answer()'"
    )
    expected = ORDER.format(command=command)
    assert (plain(result.output), result.exit_code) == (expected, exits.FAILED)
    assert sorted(modules.root.rglob("*")) == before


@pytest.mark.slow
def test_the_command_that_is_told_plays_just_these_orders(modules: Project) -> None:
    text = modules.text("imports", "patching", "using")
    [command] = [line for line in text.splitlines() if "everyorder imports" in line]
    again = modules.text(*shlex.split(command)[1:])
    assert "played    2 orders of 2: those that were named;" in again
    assert difference(text) == difference(again)


def test_a_registry_keyed_by_the_order_of_imports(modules: Project) -> None:
    assert difference(modules.text("imports", "first", "second")) == [
        "import first",
        "import second",
        "import second",
        "import first",
        "core.PLACES[0]",
        "-'first'",
        "+'second'",
        "core.PLACES[1]",
        "-'second'",
        "+'first'",
        "everyorder imports --order first,second --order second,first",
    ]


def test_a_cycle_that_fails_in_one_order_only(modules: Project) -> None:
    modules.write("upper.py", "import lower\nEARLY = 1\n")
    modules.write("lower.py", "from upper import EARLY\n")
    text = modules.text("imports", "upper", "lower")
    assert (
        "    import upper raises\n"
        "    -ImportError: cannot import name 'EARLY' from partially initialized "
        "module 'upper' (most likely due to a circular import) "
        f"({modules.root}/upper.py) (in lower)\n"
        "    +nothing\n"
    ) in text


def test_a_flag_that_another_module_reads(modules: Project) -> None:
    modules.write("flag.py", "ON = True\n")
    modules.write(
        "reader.py", "import sys\nif 'flag' in sys.modules:\n    FAST = True\n"
    )
    told = difference(modules.text("imports", "flag", "reader"))
    assert told[4:7] == ["reader.FAST", "-True", "+<absent>"]


def test_a_module_that_closes_its_output_and_hangs(modules: Project) -> None:
    """Nothing is printed at the limit of time, and it is reported all the same."""
    modules.write(
        "silent.py",
        "import os, time\n"
        "nothing = os.open(os.devnull, os.O_WRONLY)\n"
        "os.dup2(nothing, 1)\nos.dup2(nothing, 2)\n"
        "while True:\n    time.sleep(1)\n",
    )
    modules.write("plain.py", "X = 1\n")
    text = modules.text("imports", "silent", "plain", "--timeout", "0.5")
    assert "a process did not end in time" in text
    assert "exit code" not in text


def test_a_module_that_replaces_open(modules: Project) -> None:
    modules.write(
        "replacing.py",
        "import builtins\n"
        "def refuse(*_, **__):\n    raise PermissionError\n"
        "builtins.open = refuse\n",
    )
    modules.write("plain.py", "X = 1\n")
    text = modules.text("imports", "replacing", "plain")
    assert text.endswith("4 of 4 orders: holds\n")


@pytest.mark.slow
def test_three_modules_that_it_takes(modules: Project) -> None:
    modules.write("log.py", "DONE = set()\n")
    for name in ("a", "b"):
        modules.write(f"{name}.py", f"import log\nlog.DONE.add({name!r})\n")
    modules.write("c.py", "import log\nBOTH = len(log.DONE) == 2\n")
    text = modules.text("imports", "a", "b", "c")
    assert (
        "the order of a, b and c makes a difference; the order of fewer of them" in text
    )
    assert difference(text)[:9] == [
        *("import a", "import b", "import c"),
        *("import a", "import c", "import b"),
        *("c.BOTH", "-True", "+False"),
    ]


@pytest.mark.slow
def test_many_modules_are_covered_by_rows(modules: Project) -> None:
    modules.write("log.py", "DONE = []\n")
    for name in "ab":
        modules.write(f"{name}.py", f"import log\nlog.DONE.append({name!r})\n")
    for name in "cdef":
        modules.write(f"{name}.py", "NOTHING = None\n")
    text = modules.text("imports", *"abcdef")
    assert "of 1,956: each alone, each pair in both orders, and all 6" in text
    assert "2 modules    15      30     30  ORDER 1 of 15" in text
    assert difference(text)[:4] == ["import a", "import b", "import b", "import a"]


@pytest.mark.slow
def test_what_only_rows_show_is_reduced(
    modules: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "everyorder.harness.tools.imports.order_processes.MOST_EXHAUSTIVE", 3
    )
    modules.write("log.py", "DONE = set()\n")
    modules.write("c.py", "NOTHING = None\n")
    for name in "be":
        modules.write(f"{name}.py", f"import log\nlog.DONE.add({name!r})\n")
    modules.write("d.py", "import log\nBOTH = len(log.DONE) == 2\n")
    told = difference(modules.text("imports", *"bcde"))
    assert {*told[:3]} == {*told[3:6]} == {"import b", "import d", "import e"}
    assert told[6] == "d.BOTH"
    assert {*told[7:9]} in ({"-True", "+False"}, {"-False", "+True"})


def test_modules_of_the_standard_library_hold(modules: Project) -> None:
    result = modules.run("imports", "json", "decimal", "xml.etree.ElementTree")
    assert result.exit_code == exits.OK
    assert result.output.splitlines()[-1] == (
        "7 sets of 3 modules, 15 of 15 orders: holds"
    )


def test_what_is_watched_is_compared(modules: Project) -> None:
    for name in ("one", "other"):
        modules.write(f"{name}.py", f"import json\njson.dumps = {name!r}\n")
    assert modules.run("imports", "one", "other").exit_code == exits.OK
    told = difference(modules.text("imports", "one", "other", "--watch", "json"))
    assert told[4:7] == ["json.dumps", "-'other'", "+'one'"]


def test_what_differs_each_time_is_left_out(modules: Project) -> None:
    modules.write("drawn.py", "import random\nSEED = random.random()\n")
    text = modules.text("imports", "drawn", "plain")
    assert "  left out  not the same twice: drawn.SEED\n" in text
    assert text.endswith("4 of 4 orders: holds\n")
    modules.write("drawn.py", "import random, plain\nSEED = random.random()\n")
    modules.write("plain.py", "import sys\nALONE = 'drawn' not in sys.modules\n")
    told = difference(modules.text("imports", "drawn", "plain"))
    assert told[-4:-1] == ["plain.ALONE", "-False", "+True"]


def test_the_order_of_a_set_of_objects_is_left_out(modules: Project) -> None:
    modules.write(
        "hashed.py",
        "class Thing:\n    def __init__(self, name):\n        self.name = name\n\n"
        "THINGS = {Thing(name) for name in 'abcdefgh'}\n"
        "ORDER = [thing.name for thing in THINGS]\n",
    )
    modules.write("other.py", "TAKEN = [object() for _ in range(1000)]\n")
    text = modules.text("imports", "hashed", "other")
    assert "  left out  not the same twice: hashed.ORDER[...]\n" in text
    assert text.endswith("4 of 4 orders: holds\n")


def test_a_list_in_another_order_now_and_then_is_left_out_whole(
    modules: Project,
) -> None:
    modules.write("plays.txt", "")
    modules.write(
        "listed.py",
        "from pathlib import Path\n"
        "with Path(__file__).with_name('plays.txt').open('r+') as file:\n"
        "    plays = len(file.read())\n"
        "    file.write('.')\n"
        "ORDER = [0, 1, 2, 3]\n"
        "if plays < 2:\n    ORDER[:2] = 1, 0\n"
        "if plays == 5:\n    ORDER[2:] = 3, 2\n"
        "del file, plays\n",
    )
    text = modules.text("imports", "listed", "plain", "--jobs", "1")
    assert len((modules.root / "plays.txt").read_text()) == 6
    assert "  left out  not the same twice: listed.ORDER[...]\n" in text
    assert text.endswith("4 of 4 orders: holds\n")


def test_an_import_that_fails_at_random(modules: Project) -> None:
    modules.write("drawn.py", "import os\nraise KeyError(os.urandom(9).hex())\n")
    result = modules.run("imports", "drawn", "plain")
    assert result.exit_code == exits.FAILED
    assert "one order, played twice, gave two results:\n" in result.output


def test_a_module_that_ends_its_process(modules: Project) -> None:
    modules.write("ending.py", "import os, sys\n'plain' in sys.modules and os._exit(0)")
    result = modules.run("imports", "plain", "ending")
    assert result.exit_code == exits.FAILED
    assert (
        "a process ended by itself with exit code 0, in 1 of 2 orders of these "
        "modules:\n"
        "    import plain\n    import ending\nagain:\n"
        "    everyorder imports --order plain,ending\n"
    ) in result.output


def test_a_module_that_dies_of_a_signal(modules: Project) -> None:
    modules.write(
        "dying.py", "import os\nprint('on', flush=True)\nos.kill(os.getpid(), 9)"
    )
    text = modules.text("imports", "plain", "dying")
    assert "a process died of signal 9, Killed, in 1 of 1 orders of" in text
    assert "it printed:\n    on\n" in text


@needs_fork
def test_a_zygote_that_is_killed_fails_one_order(modules: Project) -> None:
    """Its child ends in time, too: it measures the time itself."""
    modules.write(
        "killing.py",
        "import os, sys, time\n"
        "if 'plain' in sys.modules:\n"
        "    open('running', 'a').write(f'{os.getpid()} ')\n"
        "    os.kill(os.getppid(), 9)\n"
        "    time.sleep(600)\n",
    )
    command = ("imports", "plain", "killing", "--jobs", "1", "--timeout", "2")
    text = modules.text(*command)
    assert "a process died of signal 9, Killed, in 1 of 2 orders of these" in text
    assert "4 of 4 orders: 1 refuted\n" in text
    pids = list(map(int, (modules.root / "running").read_text().split()))
    until = time.monotonic() + PATIENCE
    while any(map(is_alive, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    left = [pid for pid in pids if is_alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


@pytest.mark.slow
def test_a_module_that_hangs_is_told_with_its_stack(modules: Project) -> None:
    modules.write(
        "hanging.py",
        "import sys\ndef wait():\n    while 'plain' in sys.modules: pass\nwait()\n",
    )
    text = modules.text("imports", "plain", "hanging", "--timeout", "0.5")
    assert (
        "a process did not end in time, in 1 of 2 orders of these modules:\n"
        "    import plain\n    import hanging\nit printed:\n"
        f'      File "{modules.root}/hanging.py", line 3 in wait\n'
        f'      File "{modules.root}/hanging.py", line 4 in <module>\n'
        "again:\n    everyorder imports --order plain,hanging --timeout 0.5\n"
    ) in text


def test_what_shows_nothing_does_not_pass(modules: Project) -> None:
    modules.write("broken.py", "raise ValueError('never')\n")
    result = modules.run("imports", "broken", "plain", "--use", "plian.VALUE")
    assert result.exit_code == exits.FAILED
    assert (
        "broken, plain: nothing could have differed\n\n"
        "import broken raises in every order, so its order is untested: ValueError: "
        "never\n\n"
        "plian.VALUE raises in every order with all modules imported: NameError: name\n"
        "'plian' is not defined\n"
    ) in result.output


@pytest.mark.slow
def test_an_interpreter_for_each_order_finds_the_same(modules: Project) -> None:
    arguments = ("imports", "patching", "using")
    forked = difference(modules.text(*arguments))
    spawned = difference(modules.text(*arguments, "--isolation", "spawn"))
    assert spawned == [*forked[:-1], f"{forked[-1]} --isolation spawn"]


def test_modules_named_like_ours(modules: Project) -> None:
    modules.write("harness/__init__.py", "SEEN = []\n")
    modules.write("harness/heap.py", "import harness\nharness.SEEN.append(1)\n")
    for name in ("one", "other"):
        modules.write(
            f"{name}.py", f"import harness.heap\nharness.SEEN += [{name!r}]\n"
        )
    told = difference(modules.text("imports", "one", "other"))
    assert told[4:7] == ["harness.SEEN[1]", "-'one'", "+'other'"]


def test_a_child_loads_no_module_of_ours_from_a_file() -> None:
    text = """
import marshal
import sys
from everyorder.harness.tools.imports.import_zygote import _observer
from everyorder.harness.tools.imports.order_processes import _codes

class Later:
    def find_spec(name, *_):
        if name.startswith("everyorder"):
            print(name)

codes = marshal.loads(marshal.loads(_codes()))
sys.meta_path.insert(0, Later)
_observer(codes)
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""


def test_a_folder_that_is_named(modules: Project, tmp_path: Path) -> None:
    for name in ("one", "other"):
        modules.write(f"src/{name}.py", "import core\ncore.PLACES[1] = __name__\n")
    modules.write("src/core.py", "PLACES = {}\n")
    text = modules.text("imports", "one", "other", "--path", "src")
    assert text.count("everyorder imports --order one,other --order other,one --path ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("plain",),
            "cannot order plain: name at least two modules.",
        ),
        (
            ("plain", "core", "plain"),
            "plain is named twice; a process imports a module only once.",
        ),
        (
            ("plain", "plian"),
            "there is no module 'plian' in {root} or on Python's path; "
            "did you mean plain?",
        ),
        (
            ("plain", "xml.etree.ElementTre"),
            "there is no module 'xml.etree.ElementTre' in {root} or on Python's path; "
            "did you mean xml.etree.ElementTree or xml.etree.cElementTree or "
            "xml.etree.ElementPath?",
        ),
        (
            ("plain", "core", "--use", "core."),
            "'core.' is not an expression: invalid syntax. A use is evaluated after "
            "all imports, as in --use 'shop.formats()'.",
        ),
        (
            ("plain", "core", "--watch", "jsn"),
            "--watch jsn: nothing imports a module of this name; did you mean json or "
            "_json?",
        ),
        (
            ("--order", "plain,core", "--order", "plain,red"),
            "plain,core and plain,red do not order the same modules; only orders of "
            "the same modules can be compared.",
        ),
    ],
)
def test_mistakes(modules: Project, arguments: tuple[str, ...], message: str) -> None:
    result = modules.run("imports", *arguments)
    assert (unwrapped(result), result.exit_code) == (
        f"Error: {message.format(root=modules.root)}",
        exits.REFUSED,
    )


def test_an_interrupt_leaves_no_process(modules: Project) -> None:
    told = "open('running', 'a').write(f'{os.getpid()} ')"
    modules.write("waiting.py", f"import os, time\n{told}\ntime.sleep(600)\n")
    command = (sys.executable, "-m", "everyorder", "imports", "plain", "waiting")
    process = subprocess.Popen(
        command,
        cwd=modules.root,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stderr=subprocess.DEVNULL,
    )
    running = modules.root / "running"
    deadline = time.monotonic() + PATIENCE
    try:
        while not running.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == exits.INTERRUPTED
    finally:
        process.kill()
        process.wait()
    deadline = time.monotonic() + PATIENCE
    for pid in map(int, re.findall(r"\d+", running.read_text())):
        while time.monotonic() < deadline:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                break
            time.sleep(0.05)
        else:
            pytest.fail("a child outlives its command")


@pytest.mark.slow
def test_in_a_test_of_ones_own(modules: Project) -> None:
    question = of_imports("plain", "core", "red", use="core.NAMES", path=modules.root)
    told: list[tuple[int, int]] = []
    report = question.explore(jobs=1, tell=lambda *counts: told.append(counts))
    assert report.passed, report.render()
    assert [(row.size, row.sets, row.orders) for row in report.rows] == [
        (1, 3, 3),
        (2, 3, 6),
        (3, 1, 6),
    ]
    assert told == [(done, 15) for done in range(1, 16)]
    found = of_imports("first", "second", path=str(modules.root)).explore().findings
    assert [(each.verdict, each.orders) for each in found] == [
        ("order", (("first", "second"), ("second", "first")))
    ]


def test_a_package_that_lies_beside_ours_hides_none_of_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As all that is installed does, where the harness is installed, too."""
    beside = Path(harness.__file__).parent.parent / "shop/__init__.py"
    installed = ModuleType("shop")
    installed.__spec__ = ModuleSpec("shop", None, origin=str(beside))
    monkeypatch.setitem(sys.modules, "shop", installed)
    (tmp_path / "shop").mkdir()
    for name in ("__init__", "first", "second"):
        (tmp_path / f"shop/{name}.py").write_text("")
    question = of_imports("shop.first", "shop.second", path=tmp_path)
    assert question.explore().passed
