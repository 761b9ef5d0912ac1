"""Hiding places in caches, iterators, contexts, exceptions and locks."""

from tests.zoo.places import Place, box

CACHES = (
    Place(
        "lru_cache",
        "hits",
        """\
import functools


@functools.lru_cache
def touched():
    return None


class Registry(Frame):
    def load(self):
        return touched.cache_info().hits

    def store(self, value):
        touched.cache_clear()
        if value:
            for _ in range(value + 1):
                touched()


def create():
    touched.cache_clear()
    return Registry()
""",
    ),
    Place(
        "lru_cache",
        "answer kept",
        """\
import functools

coming = []


@functools.lru_cache
def past():
    return coming.pop() if coming else 0


class Registry(Frame):
    def load(self):
        return past() if past.cache_info().currsize else 0

    def store(self, value):
        past.cache_clear()
        coming.append(value)
        past()


def create():
    past.cache_clear()
    coming.clear()
    return Registry()
""",
    ),
    Place(
        "lru_cache",
        "by instance",
        """\
import functools


def create():
    class Registry(Frame):
        def __init__(self):
            super().__init__()
            self.remember = functools.lru_cache(maxsize=8)(lambda key: key)

        def load(self):
            return self.remember.cache_info().currsize

        def store(self, value):
            self.remember.cache_clear()
            for key in range(value):
                self.remember(key)

    return Registry()
""",
    ),
    Place(
        "lru_cache",
        "cached property",
        """\
import functools


class Past:
    coming = 0

    @functools.cached_property
    def kept(self):
        return Past.coming


class Registry(Frame):
    def __init__(self):
        super().__init__()
        self.past = Past()

    def load(self):
        return vars(self.past).get("kept", 0)

    def store(self, value):
        vars(self.past).pop("kept", None)
        Past.coming = value
        self.past.kept
        Past.coming = 0


def create():
    Past.coming = 0
    return Registry()
""",
    ),
)

ITERATORS = (
    box(
        "generator",
        "position",
        "self.walk = walk()\nnext(self.walk)",
        "return self.walk.send(None)",
        """
if value < self.load():
    self.walk = walk()
    next(self.walk)
while self.load() < value:
    self.walk.send("on")
""",
        head="""\
def walk():
    while (yield 0) != "on":
        pass
    while (yield 1) != "on":
        pass
    while (yield 2) != "on":
        pass
    while (yield 3) != "on":
        pass
    while (yield 4) != "on":
        pass
    while True:
        yield 5

""",
    ),
    box(
        "generator",
        "locals",
        "self.past = remembering()\nnext(self.past)",
        "return self.past.send(None)",
        "self.past.send(value)",
        head="""\
def remembering():
    past = 0
    while True:
        told = yield past
        if told is not None:
            past = told

""",
    ),
    box(
        "generator",
        "delegating",
        "self.past = outer()\nnext(self.past)",
        "return self.past.send(None)",
        "self.past.send(value)",
        head="""\
def outer():
    past = 0
    while True:
        past = yield from inner(past)


def inner(past):
    told = None
    while told is None:
        told = yield past
    return told

""",
    ),
    box(
        "generator",
        "coroutine",
        "self.past = remembering()\nself.past.send(None)",
        "return self.past.send(None)",
        "self.past.send(value)",
        head="""\
import types


@types.coroutine
def told_of(past):
    return (yield past)


async def remembering():
    past = 0
    while True:
        told = await told_of(past)
        if told is not None:
            past = told

""",
    ),
    *(
        box(
            "iterator",
            name,
            f"self.walk = {make}",
            "return SIZE - operator.length_hint(self.walk)",
            f"self.walk = {make}\nfor _ in range(value):\n    next(self.walk)",
            head=f"import collections\nimport itertools\nimport operator\n{head}\n\n",
        )
        for name, make, head in (
            ("list", "iter([None] * SIZE)", ""),
            ("range", "iter(range(SIZE))", ""),
            ("reversed", "reversed([None] * SIZE)", ""),
            ("dict", "iter(TABLE)", "\nTABLE = dict.fromkeys(range(SIZE))"),
            ("deque", "iter(LAST)", "\nLAST = collections.deque(range(SIZE))"),
            ("repeat", "itertools.repeat(None, SIZE)", ""),
            ("str", "iter('x' * SIZE)", ""),
        )
    ),
    box(
        "iterator",
        "count",
        "self.walk = itertools.count()",
        "return int(repr(self.walk)[len('count(') : -1])",
        "self.walk = itertools.count()\nfor _ in range(value):\n    next(self.walk)",
        head="import itertools\n\n",
    ),
)

CONTEXTS = (
    Place(
        "context variable",
        "module",
        """\
import contextvars

_past = contextvars.ContextVar("past", default=0)


class Registry(Frame):
    def load(self):
        return _past.get()

    def store(self, value):
        _past.set(value)


def create():
    _past.set(0)
    return Registry()
""",
    ),
    Place(
        "context variable",
        "instance",
        """\
import contextvars


class Registry(Frame):
    def __init__(self):
        super().__init__()
        self.past = contextvars.ContextVar("past")

    def load(self):
        return len(self.past.get(()))

    def store(self, value):
        self.past.set((None,) * value)


def create():
    return Registry()
""",
    ),
    Place(
        "context variable",
        "mutable",
        """\
import contextvars

_past = contextvars.ContextVar("past")


class Registry(Frame):
    def load(self):
        return _past.get()[0]

    def store(self, value):
        _past.get()[0] = value


def create():
    _past.set([0])
    return Registry()
""",
    ),
    Place(
        "thread local",
        "module",
        """\
import threading

_local = threading.local()


class Registry(Frame):
    def load(self):
        return _local.past

    def store(self, value):
        _local.past = value


def create():
    _local.past = 0
    return Registry()
""",
    ),
    box(
        "thread local",
        "instance",
        "self.local = threading.local()",
        "return getattr(self.local, 'past', 0)",
        "self.local.past = value",
        head="import threading\n\n",
    ),
    box(
        "thread local",
        "subclass",
        "self.local = Local()",
        "return self.local.past[0]",
        "self.local.past[0] = value",
        head="""\
import threading


class Local(threading.local):
    def __init__(self):
        self.past = [0]

""",
    ),
    *(
        box(
            "exception",
            name,
            f"self.error = error(0)\nself.error = {keep}",
            f"return {load}",
            f"self.error = error(value)\nself.error = {keep}",
            head=f"class Past(Exception):\n    pass\n\n\n{head}\n\n",
        )
        for name, keep, load, head in (
            (
                "args",
                "self.error",
                "self.error.args[0]",
                "def error(value):\n    return Past(value)",
            ),
            (
                "context",
                "self.error",
                "self.error.__context__.args[0]",
                """\
def error(value):
    try:
        try:
            raise Past(value)
        except Past:
            raise Past("another")
    except Past as caught:
        return caught.with_traceback(None)""",
            ),
            (
                "cause",
                "self.error",
                "self.error.__cause__.args[0]",
                """\
def error(value):
    made = Past("another")
    made.__cause__ = Past(value)
    return made""",
            ),
            (
                "traceback",
                "self.error",
                "self.error.__traceback__.tb_frame.f_locals['value']",
                """\
def error(value):
    try:
        raise Past("hidden in a frame")
    except Past as caught:
        return caught""",
            ),
            (
                "attribute",
                "self.error",
                "self.error.past",
                """\
def error(value):
    made = Past("text")
    made.past = value
    return made""",
            ),
        )
    ),
    box(
        "lock",
        "held",
        "self.lock = threading.Lock()",
        "return int(self.lock.locked())",
        "self.lock.acquire() if value else self.lock.release()",
        capacity=2,
        head="import threading\n\n",
    ),
    box(
        "lock",
        "event",
        "self.event = threading.Event()",
        "return int(self.event.is_set())",
        "self.event.set() if value else self.event.clear()",
        capacity=2,
        head="import threading\n\n",
    ),
    box(
        "lock",
        "semaphore",
        "self.lock = threading.Semaphore(SIZE)",
        "return SIZE - self.lock._value",
        """
while self.load() < value:
    self.lock.acquire()
self.lock.release(self.load() - value) if value < self.load() else None
""",
        head="import threading\n\n",
    ),
    box(
        "random",
        "own generator",
        "self.random = random.Random(0)",
        """
state = self.random.getstate()
first = self.random.random()
self.random.setstate(state)
return FIRST.index(first)
""",
        "self.random.seed(value)",
        head="""\
import random

FIRST = [random.Random(n).random() for n in range(6)]

""",
    ),
    box(
        "keyed by id",
        "dict",
        "self.anchor = [Box(), Box()]\nself.pasts = {id(b): 0 for b in self.anchor}",
        "return self.pasts[id(self.anchor[1])]",
        "self.pasts[id(self.anchor[1])] = value",
        head="class Box:\n    pass\n\n",
    ),
    box(
        "keyed by id",
        "which",
        "self.boxes = [Box() for _ in range(SIZE)]\nself.past = id(self.boxes[0])",
        "return [id(each) for each in self.boxes].index(self.past)",
        "self.past = id(self.boxes[value])",
        head="class Box:\n    pass\n\n",
    ),
)

LIVE_PLACES: tuple[Place, ...] = (
    *CACHES,
    *ITERATORS,
    *CONTEXTS,
)
