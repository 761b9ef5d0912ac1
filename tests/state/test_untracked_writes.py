"""Every place that modules reach and nobody follows tells its changes by a path."""

import contextvars
import decimal
import gc
import logging
import os
import pkgutil
import platform
import signal
import sys
import textwrap
import threading
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import pytest

from everyorder.coded_error import sentences
from everyorder.harness.base.errors import FileExists
from everyorder.harness.engine.protocol import Caveat
from everyorder.harness.state import FollowedScope, Heap
from everyorder.harness.state.c_state import context_values
from everyorder.harness.state.noise import (
    NOISE_MODULES,
    NOISE_PATHS,
    NOISE_UNLESS_NAMED,
)
from everyorder.harness.state.untracked_writes import (
    Boundary,
    Extent,
    Snapshot,
    caveats,
)

PLACES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "module list": ("items = []", "items.append(1)", ("planted.items",)),
    "module dict": ("table = {}", "table['a'] = 1", ("planted.table",)),
    "key renamed": (
        "table = {'a': 1}",
        "table['b'] = table.pop('a')",
        ("planted.table",),
    ),
    "key of another type": ("table = {}", "table[1, 2] = 1", ("planted.table",)),
    "order of a dict": ("t = {'a': 1, 'b': 2}", "t['a'] = t.pop('a')", ("planted.t",)),
    "set": ("members = set()", "members.add('x')", ("planted.members",)),
    "deque": (
        "from collections import deque\nlast = deque([1, 2], maxlen=2)",
        "last.append(1)",
        ("planted.last",),
    ),
    "rotation of a deque": (
        "from collections import deque\nlast = deque([1, 2])",
        "last.rotate()",
        ("planted.last",),
    ),
    "defaultdict": (
        "from collections import defaultdict\ntable = defaultdict(list)",
        "table['a']",
        ("planted.table",),
    ),
    "order of an OrderedDict": (
        "from collections import OrderedDict\nt = OrderedDict(a=1, b=2)",
        "t.move_to_end('a')",
        ("planted.t",),
    ),
    "nested": (
        "table = {'a': [1, {'b': []}]}",
        "table['a'][1]['b'].append(2)",
        ("planted.table['a'][1]['b']",),
    ),
    "end of a large buffer": (
        "data = bytearray(1 << 20)",
        "data[-1] = 1",
        ("planted.data",),
    ),
    "memory map": (
        "import mmap\ndata = mmap.mmap(-1, 4096)",
        "data[7] = 1",
        ("planted.data",),
    ),
    "structure of ctypes": (
        "import ctypes\nclass Pair(ctypes.Structure):\n"
        "    _fields_ = [('a', ctypes.c_int), ('b', ctypes.c_int)]\npair = Pair()",
        "pair.b = 2",
        ("planted.pair",),
    ),
    "array of ctypes": (
        "import ctypes\nnumbers = (ctypes.c_int * 4)()",
        "numbers[3] = 1",
        ("planted.numbers",),
    ),
    "annotations where there were none": (
        "def f(a): pass",
        "f.__annotations__['a'] = int",
        ("planted.f",),
    ),
    "new global": ("", "global made\nmade = 1", ("planted.made",)),
    "deleted global": ("gone = 1", "global gone\ndel gone", ("planted.gone",)),
    "rebound number": ("count = 1000", "global count\ncount += 1", ("planted.count",)),
    "number rebound twice": (
        "count = 1000",
        "global count\ncount += 1\ncount += 1",
        ("planted.count",),
    ),
    "rebound float": ("x = 0.5", "global x\nx += 1.0", ("planted.x",)),
    "sign of zero": ("x = 0.0", "global x\nx = -x", ("planted.x",)),
    "rebound to None": ("x = ()", "global x\nx = None", ("planted.x",)),
    "attribute": (
        "class Box: pass\nbox = Box()\nbox.a = 1",
        "box.a = 2",
        ("planted.box",),
    ),
    "attribute in a dict": (
        "class Box: pass\nbox = Box()\nvars(box)['a'] = 1",
        "box.a = 2",
        ("planted.box.a",),
    ),
    "list of an instance": (
        "class Box: pass\nbox = Box()\nbox.items = []",
        "box.items.append(1)",
        ("planted.box.items",),
    ),
    "slot": (
        "class Box: __slots__ = ('a',)\nbox = Box()\nbox.a = []",
        "box.a.append(1)",
        ("planted.box.a",),
    ),
    "name of a class": (
        "class Box: pass",
        "Box.__name__ = 'Bin'",
        ("planted.Box.__name__",),
    ),
    "qualified name of a class": (
        "class Box: pass",
        "Box.__qualname__ = 'Bin.Box'",
        ("planted.Box.__name__",),
    ),
    "class attribute": ("class Box: n = 0", "Box.n = 1", ("planted.Box.n",)),
    "value of an enumeration": (
        "import enum\nclass Color(enum.Enum):\n    RED = 1",
        "Color._value2member_map_['crimson'] = Color.RED",
        ("planted.Color._value2member_map_",),
    ),
    "list of a class": (
        "class Box: seen = []",
        "Box.seen.append(1)",
        ("planted.Box.seen",),
    ),
    "list of a base class": (
        "def make():\n    class Base: seen = []\n    return Base\n"
        "class Box(make()): pass",
        "Box.seen.append(1)",
        ("planted.Box.__base__.seen",),
    ),
    "closure": (
        "def make():\n    seen = []\n    return lambda x: seen.append(x)\nadd = make()",
        "add(1)",
        ("planted.add.__closure__[0].cell_contents",),
    ),
    "number in a closure": (
        "def make():\n    n = 0\n    def add():\n        nonlocal n\n        n += 1\n"
        "    return add\nadd = make()",
        "add()",
        ("planted.add.__closure__[0]",),
    ),
    "mutable default": (
        "def add(x, seen=[]): seen.append(x)",
        "add(1)",
        ("planted.add.__defaults__[0]",),
    ),
    "mutable keyword default": (
        "def add(x, *, seen=[]): seen.append(x)",
        "add(1)",
        ("planted.add.__kwdefaults__['seen']",),
    ),
    "attribute of a function": (
        "def add(): pass\nadd.count = 0",
        "add.count += 1",
        ("planted.add.count",),
    ),
    "first attribute of a function": (
        "def add(): pass",
        "add.count = 1",
        ("planted.add",),
    ),
    "replaced code": (
        "def f(): return 1\ndef g(): return 2",
        "f.__code__ = g.__code__",
        ("planted.f",),
    ),
    "bound method": (
        "class Box:\n    def __init__(self): self.seen = []\n"
        "    def add(self): self.seen.append(1)\nadd = Box().add",
        "add()",
        ("planted.add.__self__.seen",),
    ),
    "bound C method": ("add = [].append", "add(1)", ("planted.add.__self__",)),
    "partial": (
        "from functools import partial\nadd = partial(list.append, [])",
        "add(1)",
        ("planted.add.args[0]",),
    ),
    "property": (
        "class Box:\n    @property\n    def a(self, seen=[]): seen.append(1)",
        "Box().a",
        ("planted.Box.a.fget.__defaults__[0]",),
    ),
    "lru_cache": (
        "from functools import lru_cache\n@lru_cache\ndef f(x): return x",
        "f('a')",
        ("planted.f", "planted.f.<dict>"),
    ),
    "counter": (
        "import itertools\nids = itertools.count()",
        "next(ids)",
        ("planted.ids",),
    ),
    "iterator": ("it = iter([1, 2, 3])", "next(it)", ("planted.it",)),
    "generator": (
        "def run():\n    yield 1\n    yield 1\ngen = run()\nnext(gen)",
        "next(gen)",
        ("planted.gen",),
    ),
    "random": (
        "import random\nrng = random.Random(1)",
        "rng.random()",
        ("planted.rng",),
    ),
    "bytearray": ("data = bytearray(b'a')", "data[0] = 98", ("planted.data",)),
    "array": (
        "import array\ndata = array.array('i', [1])",
        "data[0] = 2",
        ("planted.data",),
    ),
    "numpy array": (
        "import numpy\ndata = numpy.zeros(3)",
        "data[0] = 2",
        ("planted.data",),
    ),
    "stream": (
        "import io\nlog = io.StringIO()",
        "log.write('a')",
        ("planted.log",),
    ),
    "cycle": (
        "import itertools\nturns = itertools.cycle('ab')\nfor _ in 'abc': next(turns)",
        "next(turns)",
        ("planted.turns",),
    ),
    "slice of an iterator": (
        "import itertools\ntail = itertools.islice(itertools.repeat(1), 5)",
        "next(tail)",
        ("planted.tail",),
    ),
    "enumerate": (
        "import itertools\nnumbered = enumerate(itertools.repeat(1))",
        "next(numbered)",
        ("planted.numbered", "planted.numbered.<tuple>"),
    ),
    "decimal context": (
        "import decimal\ncontext = decimal.Context()",
        "context.prec += 1",
        ("planted.context",),
    ),
    "C field of an exception": (
        "error = UnicodeDecodeError('ascii', b'abc', 0, 1, '')",
        "error.start = 1",
        ("planted.error",),
    ),
    "setting of a stream": (
        "import io\ntext = io.TextIOWrapper(io.BytesIO())",
        "text._CHUNK_SIZE = 1",
        ("planted.text",),
    ),
    "setting of a parser": (
        "from xml.parsers import expat\nparser = expat.ParserCreate()",
        "parser.buffer_size += 1",
        ("planted.parser",),
    ),
    "flag of a pickler": (
        "import io\nimport pickle\npickler = pickle.Pickler(io.BytesIO())",
        "pickler.fast = True",
        ("planted.pickler",),
    ),
    "another slot": (
        "class Box: __slots__ = ('a', 'b')\nbox = Box()\nbox.a = []",
        "box.b = box.a\ndel box.a",
        ("planted.box",),
    ),
    "lock": (
        "import threading\nlock = threading.Lock()",
        "lock.acquire()",
        ("planted.lock",),
    ),
    "recursive lock": (
        "import threading\nlock = threading.RLock()\nlock.acquire()",
        "lock.acquire()",
        ("planted.lock",),
    ),
    "dead weak reference": (
        "import weakref\nclass Box: pass\nkeep = [Box()]\nref = weakref.ref(keep[0])",
        "keep.clear()",
        ("planted.keep", "planted.ref"),
    ),
    "weak set": (
        "import weakref\nclass Box: pass\nkeep = Box()\nlive = weakref.WeakSet()",
        "live.add(keep)",
        ("planted.live.data",),
    ),
    "weak dict": (
        "import weakref\nclass Box: pass\nkeep = Box()\n"
        "live = weakref.WeakValueDictionary()",
        "live['a'] = keep",
        ("planted.live.data",),
    ),
    "thread local": (
        "import threading\nlocal = threading.local()",
        "local.a = 1",
        ("planted.local.a",),
    ),
    "namespace": (
        "import types\nbox = types.SimpleNamespace(a=1)",
        "box.a = 2",
        ("planted.box.a",),
    ),
    "mapping proxy": (
        "import types\ntable = types.MappingProxyType(dict(a=[]))",
        "table['a'].append(1)",
        ("planted.table.<dict>['a']",),
    ),
    "ABC registration": (
        "import abc\nclass Base(abc.ABC): pass\nclass Other: pass",
        "Base.register(Other)",
        ("planted.Base.register",),
    ),
    "subclass": (
        "class Base: pass\nkeep = []",
        "keep.append(type('Sub', (Base,), {}))",
        ("planted.Base.__subclasses__", "planted.keep"),
    ),
    "object that misleads": (
        "class Liar(list):\n"
        "    def __iter__(self): raise RuntimeError\n"
        "    def __eq__(self, other): raise RuntimeError\n"
        "    def __hash__(self): raise RuntimeError\n"
        "    def __len__(self): raise RuntimeError\n"
        "    def __getattribute__(self, name): raise RuntimeError\n"
        "    __class__ = property(lambda self: 1 / 0)\n"
        "liar = Liar()",
        "list.append(liar, [])",
        ("planted.liar",),
    ),
    "class that misleads": (
        "class Meta(type):\n"
        "    def __eq__(self, other): raise RuntimeError\n"
        "    def __hash__(self): raise RuntimeError\n"
        "    def __getattribute__(self, name): raise RuntimeError\n"
        "class Liar(metaclass=Meta): seen = []\n"
        "seen = type.__getattribute__(Liar, 'seen')\n",
        "seen.append(1)",
        ("planted.seen",),
    ),
    "chain of closures": (
        "def wrap(f): return lambda: f()\nseen = {}\ndef f(): seen[1] = 1\n"
        "g = lambda s=[]: s.append(1)\nfirst = g\n"
        "for _ in range(600): g = wrap(g)\n",
        "first()",
        ("planted.first.__defaults__[0]",),
    ),
}


def make(name: str, source: str) -> types.ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(source, vars(module))
    return module


@pytest.fixture
def plant() -> Iterator[Callable[[str], types.ModuleType]]:
    """Makes a module `planted` of some source, until the test ends."""
    yield lambda source: make("planted", source)
    sys.modules.pop("planted", None)


def play(module: types.ModuleType, operation: str) -> None:
    """Plays some lines as a function of the module that leaves no name there."""
    source = f"def operation():\n{textwrap.indent(operation, '    ')}"
    code = compile(source, "operation", "exec").co_consts[0]
    types.FunctionType(code, vars(module))()


def scan(exclude: frozenset[int] = frozenset()) -> Boundary:
    return Boundary(lambda: Extent(exclude))


def tell(sources: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """What is told of operations in a module each, all in one scan."""
    modules = {
        case: make(f"planted{at}", source)
        for at, (case, (source, _)) in enumerate(sources.items())
    }
    boundary = scan()
    before = boundary.snapshot()
    assert boundary.changes(before) == ()
    for case, module in modules.items():
        play(module, sources[case][1])
    told = boundary.changes(before)
    assert boundary.changes(boundary.snapshot()) == ()
    paths: dict[str, tuple[str, ...]] = {}
    for case, module in modules.items():
        name = module.__name__
        paths[case] = tuple(
            f"planted{path.removeprefix(name)}"
            for path in told
            if path.startswith(f"{name}.")
        )
        del sys.modules[name]
    assert sum(map(len, paths.values())) == len(told)
    return paths


@pytest.fixture(scope="module")
def told_of_places() -> dict[str, tuple[str, ...]]:
    return tell({place: case[:2] for place, case in PLACES.items()})


@pytest.mark.parametrize("place", PLACES)
def test_every_hidden_place_is_told(
    place: str, told_of_places: dict[str, tuple[str, ...]]
) -> None:
    assert told_of_places[place] == PLACES[place][2]


CLEAN: dict[str, tuple[str, str]] = {
    "nothing": ("", "pass"),
    "objects of its own": ("", "a = [1]\na.append({'b': a})"),
    "equal number": ("n = 1000", "global n\nn = int('1000')"),
    "equal text": ("s = 'a b'", "global s\ns = ' '.join('ab')"),
    "equal tuple": (
        "t = (1000, ('a b',))",
        "global t\nt = (int('1000'), (' '.join('ab'),))",
    ),
    "there and back": ("items = [1]", "items.append(2)\nitems.pop()"),
    "looked at": ("class Box: pass\nbox = Box()\nbox.a = 1\nbox.b = [1]", "vars(box)"),
    "set in another layout": (
        "s = {'a', 'b', 'c'}",
        "s.update(map(str, range(100)))\ns.difference_update(map(str, range(100)))",
    ),
    "hit of a cache": (
        "from functools import lru_cache\n@lru_cache\ndef f(x): return x\nf(1), f(2)",
        "f(1)",
    ),
    "patterns": ("import re", "re.compile('some pattern of its own')"),
    "warning": (
        "import warnings",
        "with warnings.catch_warnings(record=True):\n"
        "    warnings.simplefilter('default')\n    warnings.warn('planted')",
    ),
    "ABC look-up": (
        "import abc\nclass Base(abc.ABC): pass",
        "isinstance(1, Base)\nissubclass(str, Base)",
    ),
    "memoised function of the library": (
        "import fnmatch",
        "fnmatch.fnmatch('a', 'some?pattern')",
    ),
    "memoised function of the harness, by another's name": (
        "from everyorder.harness.engine.covering_arrays import rows",
        "rows(11, 2)",
    ),
    "single dispatch": (
        "import functools\n@functools.singledispatch\ndef f(x): return x\nf(1)",
        "f('a')",
    ),
    "no annotations, looked at": (
        "def f(a): pass",
        "f.__annotations__",
    ),
    "levels of a logger": (
        "import logging\nlog = logging.getLogger(__name__)",
        "log.debug('planted')",
    ),
    "slots for a pickle": (
        "import pickle\nclass Box: pass\nimport copyreg",
        "copyreg._slotnames(Box)",
    ),
    "members of a flag": (
        "import enum\nclass F(enum.Flag):\n    A = 1\n    B = 2",
        "F.A | F.B",
    ),
}


def test_clean_operations_tell_nothing() -> None:
    assert tell(CLEAN) == dict.fromkeys(CLEAN, ())


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("re", "compile"),
        ("re", "planted"),
        ("linecache", "getline"),
        ("tokenize", "open"),
        ("traceback", "print_exc"),
        ("traceback:TracebackException", "format"),
        ("_frozen_importlib", "_load"),
        ("zipimport:zipimporter", "find_spec"),
    ],
)
def test_what_replaces_a_function_of_a_module_full_of_caches_is_told(
    place: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = pkgutil.resolve_name(place)
    boundary = scan()
    before = boundary.snapshot()
    monkeypatch.setattr(owner, name, len, raising=False)
    assert boundary.changes(before) == (f"{place.replace(':', '.')}.{name}",)
    monkeypatch.undo()
    assert boundary.changes(before) == ()


def test_noise_that_code_names_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def importer(path: str) -> object:
        return (lambda: sys.path_importer_cache[path])()

    def other(cache: Any) -> object:
        return cache.path_importer_cache

    def changed(*functions: object) -> tuple[str, ...]:
        heap = Heap(FollowedScope(frozenset({"tests"})))
        boundary = Boundary(lambda: heap.extent({"all": functions}))
        before = boundary.snapshot()
        with monkeypatch.context() as patch:
            patch.setitem(sys.path_importer_cache, "planted", None)
            return boundary.changes(before)

    assert changed(importer, other) == ("sys.path_importer_cache",)
    assert changed(other) == ()


def test_what_replaces_a_function_that_is_followed_is_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = import_module("re")
    followed = (id(vars(module)), "compile")
    boundary = Boundary(lambda: Extent(names=frozenset({followed})))
    before = boundary.snapshot()
    monkeypatch.setattr(module, "compile", len)
    assert boundary.changes(before) == ()


def test_a_path_through_what_was_looked_at_still_leads_on(
    plant: Callable[[str], types.ModuleType],
) -> None:
    module = plant("class Box: pass\nbox = Box()\nbox.a = 1\nbox.b = [1]")
    boundary = scan()
    before = boundary.snapshot()
    play(module, "vars(box)\nbox.b.append(2)")
    assert boundary.changes(before) == ("planted.box.b",)


def test_what_an_equal_tuple_holds_is_still_compared(
    plant: Callable[[str], types.ModuleType],
) -> None:
    module = plant("t = ([], 1)")
    boundary = scan()
    before = boundary.snapshot()
    play(module, "global t\nt = (t[0], 1)\nt[0].append(1)")
    assert boundary.changes(before) == ("planted.t[0]",)


def test_a_replaced_container_is_a_change_of_its_parent_alone(
    plant: Callable[[str], types.ModuleType],
) -> None:
    module = plant("table = {'a': [1]}")
    boundary = scan()
    before = boundary.snapshot()
    replaced = module.table["a"]
    play(module, "table['a'] = [2]")
    assert boundary.changes(before) == ("planted.table",)
    assert replaced == [1]


def test_another_object_at_the_same_address_is_told_as_what_it_replaced(
    plant: Callable[[str], types.ModuleType],
) -> None:
    module = plant("table = {'a': [1]}")
    boundary = scan()
    before = boundary.snapshot()
    address = id(module.table["a"])
    others: list[list[int]] = []
    while id(module.table["a"]) != address or module.table["a"] == [1]:
        others.append(module.table["a"] if others else [])
        module.table["a"] = None
        module.table["a"] = [2]
    assert boundary.changes(before) == ("planted.table['a']",)


def test_a_new_and_shorter_way_to_what_changed_is_not_taken(
    plant: Callable[[str], types.ModuleType],
) -> None:
    module = plant("table = {'a': {'b': []}}")
    boundary = scan()
    before = boundary.snapshot()
    play(module, "global short\nshort = table['a']['b']\nshort.append(1)")
    assert boundary.changes(before) == ("planted.short", "planted.table['a']['b']")


def test_a_cache_of_levels_is_noise_and_the_loggers_are_not() -> None:
    logger = logging.getLogger("planted")
    boundary = scan()
    before = boundary.snapshot()
    logger.isEnabledFor(7)
    assert boundary.changes(before) == ()
    logger.addHandler(logging.NullHandler())
    told = boundary.changes(before)
    logger.handlers.clear()
    assert [path for path in told if path.endswith("['planted'].handlers")] != []


def test_changed_and_below_it(plant: Callable[[str], types.ModuleType]) -> None:
    module = plant("table = {'a': [1]}")
    boundary = scan()
    before = boundary.snapshot()
    play(module, "table['a'].append(1)\ntable['b'] = 1")
    assert boundary.changes(before) == ("planted.table", "planted.table['a']")


def test_members_of_the_followed_state_are_not_told(
    plant: Callable[[str], types.ModuleType],
) -> None:
    module = plant("class Box: pass\nbox = Box()\nbox.items = []\nother = []")
    members = frozenset({id(module.box)})
    boundary = scan(members)
    before = boundary.snapshot()
    play(module, "box.items.append(1)\nbox.new = 1\nother.append(1)")
    assert boundary.changes(before) == ("planted.other",)


def test_members_may_come_and_go_between_two_scans(
    plant: Callable[[str], types.ModuleType],
) -> None:
    module = plant("first = []\nsecond = []\nthird = []")
    members = {id(module.first)}
    boundary = Boundary(lambda: Extent(frozenset(members)))
    before = boundary.snapshot()
    members.add(id(module.second))
    assert boundary.changes(before) == ()
    play(module, "first.append(1)\nsecond.append(1)\nthird.append(1)")
    assert boundary.changes(before) == ("planted.third",)
    members.clear()
    assert boundary.changes(before) == ("planted.second", "planted.third")
    assert boundary.changes(boundary.snapshot()) == ()


def test_followed_names_of_a_namespace_are_not_told(
    plant: Callable[[str], types.ModuleType],
) -> None:
    module = plant("followed = 1000\nother = 1000")
    names = frozenset({(id(vars(module)), "followed")})
    boundary = Boundary(lambda: Extent(names=names))
    before = boundary.snapshot()
    play(module, "global followed, other\nfollowed = 2000\nother = 2000")
    assert boundary.changes(before) == ("planted.other",)


def test_an_import_is_told_by_its_name() -> None:
    sys.modules.pop("this", None)
    sys.modules.pop("antigravity", None)
    boundary = scan()
    before = boundary.snapshot()
    sys.modules["planted_import"] = types.ModuleType("planted_import")
    try:
        assert boundary.changes(before) == ("imports planted_import",)
        sys.modules["planted_import"] = types.ModuleType("planted_import")
        assert boundary.changes(before) == ("imports planted_import",)
        again = boundary.snapshot()
        keep = sys.modules["planted_import"]
        sys.modules["planted_import"] = types.ModuleType("planted_import")
        assert boundary.changes(again) == ("sys.modules['planted_import']",)
        del keep
    finally:
        del sys.modules["planted_import"]
    assert boundary.changes(before) == ()


@pytest.mark.parametrize("container", ["[]", "{}", "Box()", "WeakSet()"])
def test_nothing_is_kept_alive(
    container: str, plant: Callable[[str], types.ModuleType]
) -> None:
    module = plant(
        "from weakref import WeakSet\nclass Box: pass\n"
        f"keep = [Box(), {container}]\nkeep[0].inner = Box()\n"
        "def f(box=Box()): pass\nlive = WeakSet(keep[:1])"
    )
    watched = [
        weakref.ref(module.keep[0]),
        weakref.ref(module.keep[0].inner),
        weakref.ref(module.f),
        weakref.ref(module.Box),
    ]
    boundary = scan()
    before = boundary.snapshot()
    boundary.changes(before)
    module.keep.append(1)
    boundary.changes(before)
    gc.disable()
    try:
        module.keep.clear()
        del module.f
        assert [ref() is None for ref in watched] == [True, True, True, False]
        assert len(module.live) == 0
    finally:
        gc.enable()
    vars(module).clear()
    gc.collect()
    assert watched[-1]() is None
    assert before.containers > 1000


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(enabled: bool) -> None:
    boundary = scan()
    (gc.enable if enabled else gc.disable)()
    try:
        boundary.changes(boundary.snapshot())
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("planted")


def _set_recursion_limit() -> Callable[[], object]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 1)
    return lambda: sys.setrecursionlimit(limit)


def _set_handler() -> Callable[[], object]:
    handler = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    return lambda: signal.signal(signal.SIGUSR1, handler)


def _set_variable() -> Callable[[], object]:
    token = VARIABLE.set(1)
    return lambda: VARIABLE.reset(token)


def _set_precision() -> Callable[[], object]:
    context = decimal.getcontext().copy()
    decimal.getcontext().prec += 1
    return lambda: decimal.setcontext(context)


def _set_directory() -> Callable[[], object]:
    directory = os.getcwd()
    os.chdir("/")
    return lambda: os.chdir(directory)


def _set_profile() -> Callable[[], object]:
    before = sys.getprofile()
    sys.setprofile((lambda *_: None) if before is None else None)
    return lambda: sys.setprofile(before)


def _set_environment() -> Callable[[], object]:
    os.environ["PLANTED"] = "1"
    return lambda: os.environ.pop("PLANTED")


def _set_path() -> Callable[[], object]:
    sys.path.append("planted")
    return lambda: sys.path.remove("planted")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_set_recursion_limit, ("the recursion limit",)),
        (_set_handler, ("the handler of SIGUSR1",)),
        (_set_variable, ("the context variable planted",)),
        (_set_directory, ("the current directory",)),
        (_set_profile, ("the profile function",)),
        (_set_environment, ("os.environ",)),
        (_set_path, ("sys.path",)),
    ],
)
def test_what_this_thread_keeps_is_told(
    change: Callable[[], Callable[[], object]], told: tuple[str, ...]
) -> None:
    boundary = scan()
    before = boundary.snapshot()
    restore = change()
    try:
        assert boundary.changes(before) == told
    finally:
        restore()
    assert boundary.changes(before) == ()


def test_the_decimal_context_is_told() -> None:
    decimal.getcontext()
    boundary = scan()
    before = boundary.snapshot()
    restore = _set_precision()
    try:
        assert boundary.changes(before) == ("the decimal context",)
    finally:
        restore()


def test_the_inside_of_a_context_variable_is_told() -> None:
    seen: list[int] = []
    token = VARIABLE.set(seen)
    try:
        boundary = scan()
        before = boundary.snapshot()
        seen.append(1)
        assert boundary.changes(before) == ("contextvars['planted']",)
    finally:
        VARIABLE.reset(token)


def test_a_context_variable_that_is_followed_is_not_outside() -> None:
    namesake: contextvars.ContextVar[Any] = contextvars.ContextVar(VARIABLE.name)
    boundary = Boundary(lambda: Extent(frozenset({id(VARIABLE)})))
    before = boundary.snapshot()
    token = VARIABLE.set(1)
    try:
        assert boundary.changes(before) == ()
        other = namesake.set(1)
        try:
            assert boundary.changes(before) == ("the context variable planted",)
        finally:
            namesake.reset(other)
    finally:
        VARIABLE.reset(token)


def test_of_two_context_variables_of_one_name_both_are_seen() -> None:
    other: contextvars.ContextVar[Any] = contextvars.ContextVar(VARIABLE.name)
    tokens = VARIABLE.set([]), other.set([])
    try:
        boundary = scan()
        before = boundary.snapshot()
        VARIABLE.get().append(1)
        one = boundary.changes(before)
        other.get().append(1)
        both = boundary.changes(before)
    finally:
        other.reset(tokens[1])
        VARIABLE.reset(tokens[0])
    assert (len(one), len(both)) == (1, 2)
    assert {each.partition(" ")[0] for each in both} == {"contextvars['planted']"}


def test_changes_are_told_as_caveats() -> None:
    assert caveats(
        ("mine.plugins._cache", "imports json", "the current directory")
    ) == (
        Caveat(
            "outside",
            "mine.plugins._cache changed outside of the followed state; "
            "name it in watch=",
        ),
        Caveat(
            "outside",
            "an operation imports json; import it before the registry is created",
        ),
        Caveat(
            "outside",
            "the current directory changed, which no object shows; let each operation "
            "restore it",
        ),
    )
    assert caveats(()) == ()


def test_many_changes_are_summed_up() -> None:
    told = caveats(tuple(f"mine.x{number}" for number in range(25)))
    assert [caveat.text for caveat in told[19:]] == [
        "mine.x19 changed outside of the followed state; name it in watch=",
        "5 more changed outside of the followed state",
    ]


def test_what_did_not_change_is_found_without_a_second_walk() -> None:
    """Each fresh system has a context of its own, and decimals a context in each."""
    boundary = scan()

    def looked() -> Snapshot:
        decimal.getcontext()
        return boundary.snapshot()

    # Both live: what comes after the first would stand at its address.
    first, second = contextvars.Context(), contextvars.Context()
    before = first.run(looked)

    def same() -> bool:
        decimal.getcontext()
        roots = [sys.modules, *context_values().values()]
        seen = before.rescan(roots, Extent())
        return seen is not None and all(
            one is other for one, other in zip(seen.levels, before.levels, strict=True)
        )

    assert second.run(same)
    assert decimal.Context in {type(value) for value in first.values()}


def test_a_sentence_that_was_read_is_not_a_change() -> None:
    """Errors are rendered between two looks, and their tables are parsed once."""
    sentences.cache_clear()
    boundary = scan()
    before = boundary.snapshot()
    assert str(FileExists(source="x"))
    assert sentences.cache_info().currsize == 1
    assert boundary.changes(before) == ()


def test_all_noise_has_a_reason() -> None:
    assert all(NOISE_MODULES.values())
    assert all(NOISE_UNLESS_NAMED.values())
    assert all(each.reason for each in NOISE_PATHS.values())


@pytest.mark.parametrize("name", ["click", "filelock", "pluggy", "pygments", "rich"])
def test_libraries_that_the_command_line_uses_are_looked_at(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry may be made of them, however it comes to them."""
    library = import_module(name)
    boundary = scan()
    before = boundary.snapshot()
    monkeypatch.setattr(library, "planted", 1, raising=False)
    assert boundary.changes(before) == (f"{name}.planted",)


def test_what_stands_in_the_place_of_a_slot_is_not_called(plant: Any) -> None:
    module = plant(
        "class Box: __slots__ = ('a',)\n"
        "class Lazy:\n"
        "    def __get__(self, *_): raise RuntimeError('not configured')\n"
        "box = Box()"
    )
    boundary = scan()
    before = boundary.snapshot()
    module.Box.a = module.Lazy()
    assert boundary.changes(before) == ("planted.Box.a",)


def test_an_abstract_class_that_is_none_any_more(plant: Any) -> None:
    module = plant("import abc\nclass Box(abc.ABC): pass")
    boundary = scan()
    before = boundary.snapshot()
    module.Box._abc_impl = None
    told = ("planted.Box.register", "planted.Box._abc_impl")
    assert boundary.changes(before) == told


def test_a_look_keeps_no_class_alive(plant: Any) -> None:
    module = plant("class Box: __slots__ = ('a', 'b', '__weakref__')\nbox = Box()")
    kind = weakref.ref(module.Box)
    boundary = scan()
    before = boundary.snapshot()
    assert boundary.changes(before) == ()
    del module.Box, module.box
    gc.collect()
    assert kind() is None


@pytest.mark.parametrize(
    ("module", "name"), [("platform", "_planted_cache"), ("threading", "_active_ones")]
)
def test_what_is_only_called_like_noise_is_told(
    module: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table: dict[str, int] = {}
    monkeypatch.setattr(
        {"platform": platform, "threading": threading}[module],
        name,
        table,
        raising=False,
    )
    boundary = scan()
    before = boundary.snapshot()
    table["a"] = 1
    assert boundary.changes(before) == (f"{module}.{name}",)


def test_a_translation_that_is_installed_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    boundary = scan()
    before = boundary.snapshot()
    monkeypatch.setattr("builtins._", str.upper, raising=False)
    assert boundary.changes(before) == ("builtins._",)


def test_who_looks_at_annotations_changes_nothing(
    plant: Callable[[str], types.ModuleType],
) -> None:
    module = plant("def f(a: int, b: str) -> None: pass\ndef g(a: int) -> None: pass")
    boundary = scan()
    before = boundary.snapshot()
    assert module.f.__annotations__ == {"a": int, "b": str, "return": None}
    assert boundary.changes(before) == ()
    module.g.__annotations__["a"] = str
    assert boundary.changes(before) == ("planted.g",)
