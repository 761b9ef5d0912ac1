"""Hiding places that no form of the objects shows: see `Place.seal`."""

from tests.zoo.places import Place, box

OPAQUE = (
    box(
        "opaque",
        "sqlite3 table",
        """
self.base = sqlite3.connect(":memory:", check_same_thread=False)
self.base.execute("create table past (number integer)")
self.base.execute("insert into past values (0)")
""",
        "return self.base.execute('select number from past').fetchone()[0]",
        "self.base.execute('update past set number = ?', (value,))",
        head="import sqlite3\n\n",
        seal="opaque",
    ),
    box(
        "opaque",
        "sqlite3 pragma",
        'self.base = sqlite3.connect(":memory:", check_same_thread=False)',
        "return self.base.execute('pragma user_version').fetchone()[0]",
        "self.base.execute(f'pragma user_version = {value}')",
        head="import sqlite3\n\n",
        seal="opaque",
    ),
    box(
        "opaque",
        "SimpleQueue",
        "self.queue = queue.SimpleQueue()",
        "return self.queue.qsize()",
        """
while self.load() < value:
    self.queue.put(None)
while self.load() > value:
    self.queue.get()
""",
        head="import queue\n\n",
        seal="opaque",
    ),
    box(
        "opaque",
        "struct iterator",
        "self.walk = struct.iter_unpack('B', bytes(SIZE))",
        "return SIZE - operator.length_hint(self.walk)",
        """
self.walk = struct.iter_unpack("B", bytes(SIZE))
for _ in range(value):
    next(self.walk)
""",
        head="import operator\nimport struct\n\n",
        seal="opaque",
    ),
    box(
        "opaque",
        "hash",
        "self.hash = hashlib.sha256()",
        "return DIGESTS.index(self.hash.digest())",
        "self.hash = hashlib.sha256(b'x' * value)",
        head="""\
import hashlib

DIGESTS = [hashlib.sha256(b"x" * n).digest() for n in range(6)]

""",
        seal="opaque",
    ),
    box(
        "opaque",
        "csv reader",
        "self.lines = csv.reader(['x'] * SIZE)",
        "return self.lines.line_num",
        """
self.lines = csv.reader(["x"] * SIZE)
for _ in range(value):
    next(self.lines)
""",
        head="import csv\n\n",
        seal="opaque",
    ),
    box(
        "opaque",
        "XML parser",
        "self.parser = expat.ParserCreate()",
        "return self.parser.CurrentLineNumber - 1",
        """
self.parser = expat.ParserCreate()
self.parser.Parse("<!--" + chr(10) * value + "--><x>")
""",
        head="from xml.parsers import expat\n\n",
        seal="opaque",
    ),
    box(
        "opaque",
        "context",
        "self.context = contextvars.Context()",
        "return self.context.get(PAST, 0)",
        "self.context.run(PAST.set, value)",
        head='import contextvars\n\nPAST = contextvars.ContextVar("past")\n\n',
        seal="opaque",
    ),
    box(
        "opaque",
        "position in a file",
        "self.file = io.BytesIO(b'x' * SIZE)",
        "return self.file.tell()",
        "self.file.seek(value)",
        head="import io\n\n",
        seal="opaque",
    ),
    Place(
        "outside",
        "environment",
        """\
import os


class Registry(Frame):
    def load(self):
        return int(os.environ.get(__name__, "0"))

    def store(self, value):
        os.environ[__name__] = str(value)


def create():
    os.environ.pop(__name__, None)
    return Registry()
""",
        seal="outside",
    ),
    Place(
        "outside",
        "standard library's module",
        """\
import string


class Registry(Frame):
    def load(self):
        return getattr(string, __name__, 0)

    def store(self, value):
        setattr(string, __name__, value)


def create():
    vars(string).pop(__name__, None)
    return Registry()
""",
        seal="outside",
    ),
    Place(
        "outside",
        "logger",
        """\
import logging

LOGGER = logging.getLogger(__name__)


class Registry(Frame):
    def load(self):
        return LOGGER.level

    def store(self, value):
        LOGGER.setLevel(value)


def create():
    LOGGER.setLevel(0)
    return Registry()
""",
        seal="outside",
    ),
    Place(
        "outside",
        "decimal context",
        """\
import decimal


class Registry(Frame):
    def load(self):
        return decimal.getcontext().prec - 28

    def store(self, value):
        decimal.getcontext().prec = 28 + value


def create():
    decimal.getcontext().prec = 28
    return Registry()
""",
        seal="outside",
    ),
    Place(
        "outside",
        "interpreter",
        """\
import sys


class Registry(Frame):
    def load(self):
        return round(sys.getswitchinterval() * 1e4) - 50

    def store(self, value):
        sys.setswitchinterval(0.005 + value / 1e4)


def create():
    sys.setswitchinterval(0.005)
    return Registry()
""",
        seal="outside",
    ),
)

PROCESS = (
    Place(
        "once per process",
        "flag",
        """\
past = 0


class Registry(Frame):
    def load(self):
        return past

    def store(self, value):
        global past
        past = value


def create():
    return Registry()
""",
        seal="process",
    ),
    Place(
        "once per process",
        "singleton",
        """\
class Registry(Frame):
    _only = None

    def __new__(cls):
        if cls._only is None:
            cls._only = super().__new__(cls)
            cls._only.past = 0
        return cls._only

    def load(self):
        return self.past

    def store(self, value):
        self.past = value


def create():
    return Registry()
""",
        seal="process",
    ),
    Place(
        "once per process",
        "class attribute",
        """\
class Registry(Frame):
    past = [0]

    def load(self):
        return self.past[0]

    def store(self, value):
        self.past[0] = value


def create():
    return Registry()
""",
        seal="process",
    ),
    Place(
        "once per process",
        "default",
        """\
class Registry(Frame):
    def load(self, past=[0]):
        return past[0]

    def store(self, value):
        Registry.load.__defaults__[0][0] = value


def create():
    return Registry()
""",
        seal="process",
    ),
    Place(
        "once per process",
        "None at first",
        """\
past = None


class Registry(Frame):
    def load(self):
        return past or 0

    def store(self, value):
        global past
        past = value or None


def create():
    return Registry()
""",
        seal="process",
    ),
    Place(
        "once per process",
        "dict",
        """\
class Registry(Frame):
    _cache = {}

    def load(self):
        return self._cache.get("past", 0)

    def store(self, value):
        self._cache.clear()
        if value:
            self._cache["past"] = value


def create():
    return Registry()
""",
        seal="process",
    ),
    Place(
        "once per process",
        "lru_cache",
        """\
from functools import lru_cache


@lru_cache
def past():
    return [0]


class Registry(Frame):
    def load(self):
        return past()[0]

    def store(self, value):
        past()[0] = value


def create():
    return Registry()
""",
        seal="process",
    ),
)

SEALED_PLACES: tuple[Place, ...] = (
    *OPAQUE,
    *PROCESS,
)
