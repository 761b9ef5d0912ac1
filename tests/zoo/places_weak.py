"""Hiding places behind weak references, subclasses and registrations."""

from tests.zoo.places import Place

WEAK = (
    Place(
        "weak reference",
        "proxy",
        """\
import weakref


class Past:
    past = 0


_held = Past()


class Registry(Frame):
    def __init__(self):
        super().__init__()
        self.proxy = weakref.proxy(_held)

    def load(self):
        return self.proxy.past

    def store(self, value):
        self.proxy.past = value


def create():
    vars(_held).clear()
    return Registry()
""",
    ),
    Place(
        "weak reference",
        "proxy beside its target",
        """\
import weakref


class Past:
    def __init__(self, past):
        self.past = past


class Registry(Frame):
    def __init__(self):
        super().__init__()
        self.pasts = [Past(n) for n in range(SIZE)]
        self.proxy = weakref.proxy(self.pasts[0])

    def load(self):
        return self.proxy.past

    def store(self, value):
        self.proxy = weakref.proxy(self.pasts[value])


def create():
    return Registry()
""",
    ),
    Place(
        "weak reference",
        "callback",
        """\
import weakref


class Anchor:
    pass


ANCHOR = Anchor()


def callback(value):
    return lambda reference=None: value


class Registry(Frame):
    def __init__(self):
        super().__init__()
        self.reference = weakref.ref(ANCHOR, callback(0))

    def load(self):
        return self.reference.__callback__()

    def store(self, value):
        self.reference = weakref.ref(ANCHOR, callback(value))


def create():
    return Registry()
""",
    ),
    Place(
        "weak reference",
        "keyed by a class",
        """\
import weakref

_pasts = weakref.WeakKeyDictionary()


class Registry(Frame):
    def load(self):
        return _pasts.get(Frame, 0)

    def store(self, value):
        _pasts[Frame] = value


def create():
    _pasts.clear()
    return Registry()
""",
    ),
    Place(
        "garbage in a weak set",
        "cycles",
        """\
import weakref


class Node:
    def __init__(self):
        self.me = self


class Registry(Frame):
    def __init__(self):
        super().__init__()
        self.nodes = weakref.WeakSet()

    def load(self):
        return len(self.nodes)

    def store(self, value):
        if value < len(self.nodes):
            self.nodes = weakref.WeakSet()
        while len(self.nodes) < value:
            self.nodes.add(Node())


def create():
    return Registry()
""",
        seal="volatile",
    ),
    Place(
        "garbage in a weak set",
        "values of a dict",
        """\
import weakref


class Node:
    def __init__(self, number):
        self.number, self.others = number, [self]


_nodes = weakref.WeakValueDictionary()


class Registry(Frame):
    def load(self):
        return max((node.number for node in _nodes.values()), default=0)

    def store(self, value):
        _nodes.pop("past", None)
        if value:
            _nodes["past"] = Node(value)


def create():
    _nodes.clear()
    return Registry()
""",
        seal="volatile",
    ),
    Place(
        "garbage in a weak set",
        "reference",
        """\
import weakref


class Node:
    def __init__(self, number):
        self.number = number
        self.tell = lambda: self.number


class Registry(Frame):
    reference = None

    def load(self):
        node = self.reference and self.reference()
        return node.tell() if node else 0

    def store(self, value):
        self.reference = weakref.ref(Node(value)) if value else None


def create():
    return Registry()
""",
        seal="volatile",
    ),
    Place(
        "__subclasses__",
        "held",
        """\
def base():
    class Base:
        pass

    return Base


class Registry(Frame):
    def __init__(self):
        super().__init__()
        self.base, self.held = base(), []

    def load(self):
        return len(self.base.__subclasses__())

    def store(self, value):
        if value < self.load():
            self.base, self.held = base(), []
        while self.load() < value:
            self.held.append(type("Derived", (self.base,), {}))


def create():
    return Registry()
""",
    ),
    Place(
        "__subclasses__",
        "held by a function",
        """\
def base():
    class Base:
        pass

    return Base


def holder(*held):
    return lambda: held


class Registry(Frame):
    def __init__(self):
        super().__init__()
        self.base, self.holder = base(), holder()

    def load(self):
        return sum(kind.weight for kind in self.base.__subclasses__())

    def store(self, value):
        self.base = base()
        self.holder = holder(type("Derived", (self.base,), {"weight": value}))


def create():
    return Registry()
""",
    ),
    Place(
        "__subclasses__",
        "held by nobody",
        """\
def base():
    class Base:
        pass

    return Base


class Registry(Frame):
    def __init__(self):
        super().__init__()
        self.base = base()

    def load(self):
        return len(self.base.__subclasses__())

    def store(self, value):
        if value < self.load():
            self.base = base()
        while self.load() < value:
            type("Derived", (self.base,), {})


def create():
    return Registry()
""",
        seal="volatile",
    ),
    Place(
        "ABC registration",
        "issubclass",
        """\
import abc


def shape():
    class Shape(abc.ABC):
        pass

    return Shape


KINDS = [type(f"Kind{n}", (), {}) for n in range(SIZE)]


class Registry(Frame):
    def __init__(self):
        super().__init__()
        self.shape = shape()

    def load(self):
        return sum(issubclass(kind, self.shape) for kind in KINDS)

    def store(self, value):
        if value < self.load():
            self.shape = shape()
        for kind in KINDS[:value]:
            self.shape.register(kind)


def create():
    return Registry()
""",
    ),
    Place(
        "ABC registration",
        "isinstance",
        """\
from abc import ABCMeta

LADDER = []
THINGS = [type(f"Thing{n}", (), {})() for n in range(SIZE)]


class Registry(Frame):
    def load(self):
        return sum(isinstance(thing, LADDER[0]) for thing in THINGS)

    def store(self, value):
        if value < self.load():
            LADDER[0] = ABCMeta("Rung", (), {})
        for thing in THINGS[self.load() : value]:
            LADDER[0].register(type(thing))


def create():
    LADDER[:] = [ABCMeta("Rung", (), {})]
    return Registry()
""",
    ),
    Place(
        "ABC registration",
        "singledispatch",
        """\
import functools


class Thing:
    pass


def past(thing):
    return 0


class Registry(Frame):
    def __init__(self):
        super().__init__()
        self.past = functools.singledispatch(past)

    def load(self):
        return self.past(Thing())

    def store(self, value):
        self.past.register(Thing, lambda thing: value)


def create():
    return Registry()
""",
    ),
)

WEAK_PLACES: tuple[Place, ...] = (*WEAK,)
