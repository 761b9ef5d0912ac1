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
_PROCESS = "import array, getpass, gc, marshal, operator, pickle, inspect, locale, os, platform, secrets, socket, sys, threading, uuid, random, weakref\n"
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
    ("pickle.dumps(1)", "pickle.loads(b'I1\\n.')", "dumps"),
    ("marshal.dumps(1)", "marshal.loads(b'N')", "dumps"),
    ("sorted(['x'], key=hash)", "sorted(['x'], key=len)", "hash"),
):
    _call(expression, pure, name, head=_PROCESS)

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
