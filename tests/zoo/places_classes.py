"""Hiding places in an instance, in its class, its bases and its descriptors."""

from tests.zoo.places import Place, box

ATTRIBUTES = (
    box("attribute", "plain", "self.past = 0", "return self.past", "self.past = value"),
    box(
        "attribute",
        "nested",
        "self.box = {'past': [[0]]}",
        "return self.box['past'][0][0]",
        "self.box['past'][0] = [value]",
    ),
    box(
        "attribute",
        "tuple",
        "self.past = ()",
        "return len(self.past)",
        "self.past = (None,) * value",
    ),
    box(
        "attribute",
        "cycle",
        "self.past = [self, 0]",
        "return self.past[1]",
        "self.past = [self, value]",
    ),
    box(
        "attribute",
        "chain",
        "self.past = None",
        """
length, link = 0, self.past
while link is not None:
    length, link = length + 1, link[0]
return length // 100
""",
        """
self.past = None
for _ in range(100 * value):
    self.past = (self.past,)
""",
    ),
    box(
        "attribute",
        "sharing",
        "self.boxes = [[] for _ in range(SIZE)]\nself.past = self.boxes[0]",
        "return [each is self.past for each in self.boxes].index(True)",
        "self.past = self.boxes[value]",
    ),
)

CLASS_ATTRIBUTES = (
    Place(
        "class attribute",
        "own",
        """\
class Registry(Frame):
    past = 0

    def load(self):
        return self.past

    def store(self, value):
        type(self).past = value


def create():
    Registry.past = 0
    return Registry()
""",
    ),
    Place(
        "class attribute",
        "list",
        """\
class Registry(Frame):
    pasts = []

    def load(self):
        return len(self.pasts)

    def store(self, value):
        self.pasts[:] = range(value)


def create():
    Registry.pasts.clear()
    return Registry()
""",
    ),
    Place(
        "class attribute",
        "made by create",
        """\
def create():
    class Registry(Frame):
        past = 0

        def load(self):
            return Registry.past

        def store(self, value):
            Registry.past = value

    return Registry()
""",
    ),
    Place(
        "class attribute",
        "metaclass",
        """\
class Meta(type):
    past = 0


class Registry(Frame, metaclass=Meta):
    def load(self):
        return Meta.past

    def store(self, value):
        Meta.past = value


def create():
    Meta.past = 0
    return Registry()
""",
    ),
    Place(
        "class attribute",
        "class of the instance",
        """\
class Registry(Frame):
    past = 0

    def load(self):
        return type(self).past

    def store(self, value):
        self.__class__ = KINDS[value]


KINDS = [Registry]
KINDS += [type("Registry", (Registry,), {"past": n}) for n in range(1, SIZE)]


def create():
    return Registry()
""",
    ),
    Place(
        "class attribute",
        "name of the class",
        """\
def create():
    class Registry(Frame):
        def load(self):
            return len(type(self).__name__) - len("Registry")

        def store(self, value):
            type(self).__name__ = "Registry" + "_" * value

    return Registry()
""",
    ),
)

BASE_CLASSES = (
    Place(
        "base class",
        "attribute",
        """\
class Shelf(Frame):
    past = 0


class Board(Shelf):
    pass


class Registry(Board):
    def load(self):
        return self.past

    def store(self, value):
        Shelf.past = value


def create():
    Shelf.past = 0
    return Registry()
""",
    ),
    Place(
        "base class",
        "mixin's table",
        """\
class Remembers:
    _table = {}

    def load(self):
        return Remembers._table.get("past", 0)

    def store(self, value):
        Remembers._table["past"] = value


class Registry(Remembers, Frame):
    pass


def create():
    Remembers._table.clear()
    return Registry()
""",
    ),
    Place(
        "base class",
        "exchanged",
        """\
class Past:
    past = 0


PASTS = [type(f"Past{n}", (Past,), {"past": n}) for n in range(SIZE)]


class Registry(Frame, PASTS[0]):
    def load(self):
        return self.past

    def store(self, value):
        Registry.__bases__ = (Frame, PASTS[value])


def create():
    Registry.__bases__ = (Frame, PASTS[0])
    return Registry()
""",
    ),
    Place(
        "base class",
        "function",
        """\
class Shelf(Frame):
    def load(self):
        return 0


class Registry(Shelf):
    def store(self, value):
        Shelf.load = lambda self: value


def create():
    Shelf.load = lambda self: 0
    return Registry()
""",
    ),
)

DESCRIPTORS = (
    Place(
        "descriptor",
        "holds it itself",
        """\
class Past:
    past = 0

    def __get__(self, registry, kind=None):
        return self.past

    def __set__(self, registry, value):
        self.past = value


class Registry(Frame):
    past = Past()

    def load(self):
        return self.past

    def store(self, value):
        self.past = value


def create():
    vars(vars(Registry)["past"]).clear()
    return Registry()
""",
    ),
    Place(
        "descriptor",
        "by instance, weakly",
        """\
import weakref


class Past:
    def __init__(self):
        self.pasts = weakref.WeakKeyDictionary()

    def __get__(self, registry, kind=None):
        return self.pasts.get(registry, 0)

    def __set__(self, registry, value):
        self.pasts[registry] = value


class Registry(Frame):
    past = Past()

    def load(self):
        return self.past

    def store(self, value):
        self.past = value


def create():
    vars(Registry)["past"].pasts.clear()
    return Registry()
""",
    ),
    Place(
        "descriptor",
        "property over a cell",
        """\
def remembered():
    past = 0

    def get(registry):
        return past

    def put(registry, value):
        nonlocal past
        past = value

    return property(get, put)


class Registry(Frame):
    past = remembered()

    def load(self):
        return self.past

    def store(self, value):
        self.past = value


def create():
    Registry.past = remembered()
    return Registry()
""",
    ),
    Place(
        "descriptor",
        "exchanged",
        """\
class Registry(Frame):
    def load(self):
        return self.past

    def store(self, value):
        Registry.past = property(lambda registry: value)


def create():
    Registry.past = property(lambda registry: 0)
    return Registry()
""",
    ),
)

CLASS_PLACES: tuple[Place, ...] = (
    *ATTRIBUTES,
    *CLASS_ATTRIBUTES,
    *BASE_CLASSES,
    *DESCRIPTORS,
)
