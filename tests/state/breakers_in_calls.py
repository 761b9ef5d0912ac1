"""Breakers that are decided by what no state holds: the outside world, and identity."""

# ruff: noqa: E501  # each row of the table is one source text

from tests.state.breakers import Call, Place

CALLS: dict[str, Call] = {}


def _call(impure: str, pure: str, *names: str, head: str = "") -> None:
    assert impure not in CALLS
    CALLS[impure] = Call(impure, pure, names, head)


_TIME = "import datetime, time\nfrom time import monotonic as clock\n"
for expression, name in (
    ("datetime.datetime.now()", "datetime.now"),
    ("datetime.datetime.utcnow()", "datetime.utcnow"),
    ("datetime.datetime.today()", "date.today"),
    ("datetime.date.today()", "date.today"),
    ("datetime.datetime.now(datetime.timezone.utc)", "datetime.now"),
):
    _call(expression, "datetime.date(2020, 1, 2).isoformat()", name, head=_TIME)
for name in (
    "time",
    "time_ns",
    "monotonic",
    "perf_counter",
    "process_time",
    "localtime",
    "ctime",
):
    _call(
        f"time.{name}()",
        "datetime.timedelta(1).total_seconds()",
        f"time.{name}",
        head=_TIME,
    )
_call("clock()", "len('clock')", "monotonic", head=_TIME)
_call(
    "time.strftime('%Y')",
    "datetime.date(2020, 1, 2).strftime('%Y')",
    "time.strftime",
    head=_TIME,
)
_FILES = "import glob, io, os, pathlib, shutil, tempfile\n"
for expression, pure, name in (
    ("os.path.exists('x')", "os.path.join('x', 'y')", "stat"),
    ("os.path.isfile('x')", "os.path.basename('x')", "stat"),
    ("os.path.isdir('x')", "os.path.dirname('x')", "stat"),
    ("os.path.getmtime('/')", "os.path.normpath('x/../y')", "stat"),
    ("os.path.getsize('/')", "os.path.splitext('x.y')", "stat"),
    ("os.path.realpath('x')", "os.path.isabs('x')", "lstat"),
    ("os.path.abspath('x')", "os.path.split('x')", "getcwd"),
    ("os.listdir('/')", "sorted('ab')", "listdir"),
    ("list(os.scandir('/'))[:0]", "sorted('bc')", "scandir"),
    ("os.access('x', 4)", "os.fspath('x')", "access"),
    ("os.getcwd()", "os.path.commonprefix(['x'])", "getcwd"),
    ("open('/dev/null').close()", "io.StringIO('x').close()", "open"),
    ("io.open('/dev/null').close()", "io.BytesIO(b'x').close()", "open"),
    ("pathlib.Path('x').exists()", "pathlib.PurePath('x') / 'y'", "stat"),
    ("pathlib.Path('x').is_file()", "pathlib.PurePath('x').name", "stat"),
    ("pathlib.Path.cwd()", "pathlib.PurePath('x').suffix", "getcwd"),
    ("list(pathlib.Path('/').iterdir())[:0]", "pathlib.PurePath('x').parts", "listdir"),
    ("pathlib.Path('/dev/null').read_text()", "pathlib.PurePath('x').stem", "open"),
    ("glob.glob('/*')", "glob.escape('x')", "scandir"),
    ("shutil.which('nothing')", "os.path.splitdrive('x')", "environ"),
):
    _call(expression, pure, name, head=_FILES)
_PROCESS = "import array, copy, getpass, gc, marshal, operator, pickle, inspect, locale, os, platform, secrets, socket, sys, threading, uuid, random, weakref\n"
for expression, pure, name in (
    ("os.getenv('BREAKER')", "os.fspath('a')", "environ"),
    ("os.environ.get('BREAKER')", "{}.get('BREAKER')", "environ"),
    ("'BREAKER' in os.environ", "'BREAKER' in {}", "environ"),
    ("os.environ['PATH']", "{'PATH': 1}['PATH']", "environ"),
    ("os.getpid()", "os.fspath('b')", "getpid"),
    ("os.getppid()", "os.fspath('c')", "getppid"),
    ("os.times()", "os.fspath('d')", "times"),
    ("os.urandom(1)", "bytes(1)", "urandom"),
    ("os.cpu_count()", "os.fspath('e')", "cpu_count"),
    ("socket.gethostname()", "len('host')", "gethostname"),
    ("uuid.uuid4()", "uuid.UUID(int=4)", "urandom"),
    ("secrets.token_hex()", "bytes(2).hex()", "urandom"),
    ("id(self)", "len('id')", "id"),
    ("hash('text')", "len('hash')", "hash"),
    ("hash(self.opened)", "len('hashes')", "hash"),
    ("sys.getrefcount(self)", "len('count')", "getrefcount"),
    ("sys.getsizeof(self)", "len('size')", "getsizeof"),
    ("self.__sizeof__()", "len('sizes')", "__sizeof__"),
    ("gc.get_count()", "len('gc')", "get_count"),
    ("len(gc.get_objects())", "len('objects')", "get_objects"),
    ("gc.isenabled()", "len('enabled')", "isenabled"),
    ("sys.getrecursionlimit()", "len('limit')", "getrecursionlimit"),
    ("weakref.getweakrefcount(self)", "len('refs')", "getweakrefcount"),
    ("threading.get_native_id()", "threading.get_ident() and 1", "get_native_id"),
    ("locale.setlocale(locale.LC_ALL)", "len('locale')", "setlocale"),
    ("random.SystemRandom().random()", "len('random')", "urandom"),
    ("sys.intern.__self__.getswitchinterval()", "len('switch')", "getswitchinterval"),
    ("getattr(os, 'get' + 'pid')()", "getattr(os, 'fs' + 'path')('f')", "getpid"),
    ("list(map(id, [self]))", "list(map(len, ['x']))", "id"),
    ("object.__hash__(self)", "len('hashed')", "__hash__"),
    ("operator.is_('x', self)", "operator.eq('x', 1)", "is_"),
    (
        "list(map(operator.is_not, 'x', 'y'))",
        "list(map(operator.ne, 'x', 'y'))",
        "is_not",
    ),
    ("object.__eq__('x', self)", "str.__eq__('x', 'y')", "__eq__"),
    ("array.array('i').buffer_info()", "array.array('i').tolist()", "buffer_info"),
    ("pickle.dumps(1)", "copy.copy(1)", "dumps"),
    ("pickle.loads(b'I1\\n.')", "copy.deepcopy([1])", "loads"),
    ("marshal.dumps(1)", "marshal.loads(b'N')", "dumps"),
    ("sorted(['x'], key=hash)", "sorted(['x'], key=len)", "hash"),
):
    _call(expression, pure, name, head=_PROCESS)

# What is stored for the thread, or in the interpreter.
_THREAD = "import _imp, asyncio, codecs, functools, itertools, math, os, sys, weakref\n"
_THREAD += """
def handler(error): return "", error.end
codecs.register_error("planted", handler)
"""
for expression, pure, name in (
    ("_imp.lock_held()", "1 < 2", "lock_held"),
    ("_imp.acquire_lock() or _imp.release_lock()", "2 < 3", "acquire_lock"),
    ("asyncio._set_running_loop(None)", "asyncio._get_running_loop()", "_set_running"),
    ("asyncio.tasks._enter_task", "asyncio.tasks.Task", "_enter_task"),
    ("asyncio.tasks._leave_task", "asyncio.tasks.wait", "_leave_task"),
    ("asyncio.tasks._register_task", "asyncio.tasks.sleep", "_register_task"),
    ("{1}.pop()", "{1}.union({2})", "set.pop"),
    ("list(map(set.pop, [{1}]))", "list(map(set.copy, [{1}]))", "set.pop"),
    ("bytearray(9).__alloc__()", "bytearray(9).__len__()", "__alloc__"),
    ("sys.audit('planted')", "sys.exc_info()", "sys.audit"),
    ("codecs.lookup('ascii')", "'x'.encode('ascii')", "_codecs.lookup"),
    (
        "'\u00e9'.encode('ascii', 'planted')",
        "'\u00e9'.encode('utf-8')",
        "register_error",
    ),
):
    _call(expression, pure, name, head=_THREAD)
# What code reads of frames, of code and of memory.
_READS = """
import ctypes, inspect, math, mmap, sys
from ctypes import pythonapi
def imported():
    from ctypes import pythonapi as api
    return api
def imported_math():
    from math import pi as api
    return api
def enclosing(module=mmap):
    place = module
    return lambda: place.PAGESIZE
def enclosing_math(module=math):
    place = module
    return lambda: place.pi
"""
for expression, pure, name in (
    ("sys._getframe().f_locals", "sys._getframe().f_globals", "frame.f_locals"),
    ("getattr(sys._getframe(), 'f_locals')", "sys._getframe().f_code", "f_locals"),
    ("inspect.getargvalues(sys._getframe())", "sys._getframe().f_back", "f_locals"),
    ("sys._getframe().f_trace", "sys._getframe().f_lineno", "frame.f_trace"),
    (
        "self.opened.__code__._co_code_adaptive",
        "self.opened.__code__.co_code",
        "_co_code_adaptive",
    ),
    ("ctypes.pythonapi", "math.pi", "ctypes"),
    ("pythonapi", "math", "ctypes"),
    ("math and mmap.PAGESIZE", "math and math.e", "mmap"),
    ("(lambda: pythonapi)()", "(lambda: math)()", "ctypes"),
    ("imported()", "imported_math()", "ctypes"),
    ("enclosing()()", "enclosing_math()()", "mmap"),
    ("__import__('mmap').PAGESIZE", "__import__('math').tau", "mmap"),
    ("sys.modules['mmap'].PAGESIZE", "sys.modules['math'].nan", "mmap"),
    ("mmap.mmap(-1, 4096)[0]", "b'x'[0]", "mmap"),
):
    _call(expression, pure, name, head=_READS)
# Functions in C by names that are computed, or of modules that are imported inside.
_COMPUTED = """
import functools, keyword, math, os, time
ID, ROOT = "".join(["get", "pid"]), "".join(["sq", "rt"])
def inside():
    import os as system
    return list(map(system.nice, []))
def inside_math():
    import math as system
    return list(map(system.sqrt, []))
def from_inside():
    from os import nice
    return list(map(nice, []))
def from_inside_math():
    from math import sqrt
    return list(map(sqrt, []))
def passed():
    import os as system
    return vars(system)[ID]
def passed_python():
    import keyword as system
    return vars(system)["iskeyword"]
"""
for expression, pure, name in (
    (
        "functools.partial(getattr(os, ID))()",
        "getattr(math, ROOT)(4)",
        "function of os",
    ),
    ("list(map(getattr(os, ID), []))", "list(map(getattr(math, ROOT), []))", "of os"),
    (
        "list(map(getattr(os, 'nice'), []))",
        "list(map(getattr(math, 'sqrt'), []))",
        "nice",
    ),
    ("vars(os)[ID] and 1", "vars(math)[ROOT] and 1", "a function of os"),
    ("os.__dict__[ID] and 1", "math.__dict__[ROOT] and 1", "a function of os"),
    ("(lambda module: 1)(os)", "(lambda module: 1)(keyword)", "a function of os"),
    ("getattr(time, ID, None)", "hasattr(time, 'x')", "a function of time"),
    ("inside()", "inside_math()", "os.nice"),
    ("from_inside()", "from_inside_math()", "os.nice"),
    ("passed() and 1", "passed_python() and 1", "a function of os"),
):
    _call(expression, pure, name, head=_COMPUTED)
# Identity of equal values: the number of misses is how many of `LIMIT` values are not
# the very object of a table.  The twin compares by `==`.
IDENTITY: dict[str, Place] = {}
_VALUES = {
    "text": ("'x' * 20", "''.join(['x'] * 20)"),
    "bytes": ("b'x' * 20", "bytes(bytearray(b'x' * 20))"),
    "number": ("int('1000')", "int('1000')"),
    "large number": ("int('1' * 30)", "int('1' * 30)"),
    "float": ("float('1.5')", "float('1.5')"),
    "complex": ("complex('1j')", "complex('1j')"),
    "tuple": ("tuple(['x'])", "tuple(['x'])"),
    "frozenset": ("frozenset(['x'])", "frozenset(['x'])"),
    "range": ("range(3)", "range(3)"),
    "decimal": ("decimal.Decimal(1)", "decimal.Decimal(1)"),
    "fraction": ("fractions.Fraction(1)", "fractions.Fraction(1)"),
    "date": ("datetime.date(2020, 1, 1)", "datetime.date(2020, 1, 1)"),
}
for name, (first, second) in _VALUES.items():
    for operator in ("is", "is not"):
        count = "LIMIT - " if operator == "is" else ""
        IDENTITY[f"{name}, by `{operator}`"] = Place(
            f"return {count}sum(value {operator} KEY for value in self.box)",
            "self.box = [NEW() if at < number else KEY for at in range(LIMIT)]",
            head=f"import datetime, decimal, fractions\nKEY = {first}\n"
            f"def NEW(): return {second}",
            right="self.box = [NEW() for _ in range(LIMIT)]\nall(value == KEY for value in self.box)",
        )
# The same by functions in C.
_BOX = "self.box = [NEW() if at < number else KEY for at in range(LIMIT)]"
_EQUAL = (
    "self.box = [NEW() for _ in range(LIMIT)]\nall(value == KEY for value in self.box)"
)
for name, same in {
    "operator.is_": "operator.is_(value, KEY)",
    "operator.is_ by map": "any(map(operator.is_, [value], [KEY]))",
    "operator.is_ by partial": "functools.partial(operator.is_, KEY)(value)",
    "operator.is_not": "not operator.is_not(value, KEY)",
    "object.__eq__": "object.__eq__(value, KEY) is True",
    "object.__ne__": "object.__ne__(value, KEY) is False",
    "super": "super(str, value).__eq__(KEY) is True",
    "vars of object": "vars(object)['__eq__'](value, KEY) is True",
    "pickle": "len(pickle.dumps([value, KEY])) < len(pickle.dumps([KEY, NEW()]))",
    "marshal": "len(marshal.dumps([value, KEY])) < len(marshal.dumps([KEY, NEW()]))",
}.items():
    IDENTITY[f"text, by {name}"] = Place(
        f"return LIMIT - sum({same} for value in self.box)",
        _BOX,
        head="import functools, marshal, operator, pickle\nKEY = 'x' * 20\n"
        "def NEW(): return ''.join(['x'] * 20)",
        right=_EQUAL,
    )
