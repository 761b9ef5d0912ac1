"""Hiding places behind what an object says of itself."""

from tests.zoo.places import Place, box

SLOTS = (
    Place(
        "shadowed slot",
        "of a base",
        """\
class Old(Frame):
    __slots__ = ("past",)


class Registry(Old):
    __slots__ = ("past",)

    def __init__(self):
        super().__init__()
        self.past = 0
        Old.past.__set__(self, 0)

    def load(self):
        return Old.past.__get__(self)

    def store(self, value):
        Old.past.__set__(self, value)


def create():
    return Registry()
""",
    ),
    Place(
        "shadowed slot",
        "dict behind a slot",
        """\
class Registry(Frame):
    __slots__ = ("past",)

    def __init__(self):
        super().__init__()
        self.past = 0
        self.__dict__["past"] = 0

    def load(self):
        return self.__dict__["past"]

    def store(self, value):
        self.__dict__["past"] = value


def create():
    return Registry()
""",
    ),
    Place(
        "shadowed slot",
        "slot behind a class attribute",
        """\
class Old(Frame):
    __slots__ = ("past",)


slot = Old.past


class Registry(Old):
    past = 0

    def __init__(self):
        super().__init__()
        slot.__set__(self, 0)

    def load(self):
        return slot.__get__(self)

    def store(self, value):
        slot.__set__(self, value)


def create():
    return Registry()
""",
    ),
    Place(
        "shadowed slot",
        "private slot",
        """\
class Old(Frame):
    __slots__ = ("__past",)

    def _past(self):
        return self.__past

    def _move(self, value):
        self.__past = value


class Registry(Old):
    __slots__ = ("__past",)

    def __init__(self):
        super().__init__()
        self.__past = 0
        self._move(0)

    def load(self):
        return self._past()

    def store(self, value):
        self._move(value)


def create():
    return Registry()
""",
    ),
)

MISLEADING = (
    box(
        "misleading __iter__",
        "list",
        "self.shy = Shy([0])",
        "return list.__getitem__(self.shy, 0)",
        "list.__setitem__(self.shy, 0, value)",
        head="""\
class Shy(list):
    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __getitem__(self, key):
        raise IndexError(key)

""",
    ),
    box(
        "misleading __iter__",
        "dict",
        "self.shy = Shy(past=0)",
        "return dict.__getitem__(self.shy, 'past')",
        "dict.__setitem__(self.shy, 'past', value)",
        head="""\
class Shy(dict):
    def __iter__(self):
        return iter(())

    def keys(self):
        return ()

    items = values = keys

    def __len__(self):
        return 0

""",
    ),
    box(
        "misleading __iter__",
        "set",
        "self.shy = Shy()",
        "return set.__len__(self.shy)",
        "set.clear(self.shy)\nset.update(self.shy, range(value))",
        head="""\
class Shy(set):
    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __contains__(self, key):
        return False

""",
    ),
    box(
        "misleading __iter__",
        "tuple",
        "self.shy = Shy((0,))",
        "return tuple.__getitem__(self.shy, 0)",
        "self.shy = Shy((value,))",
        head="""\
class Shy(tuple):
    def __iter__(self):
        return iter((1, 2, 3))

    def __len__(self):
        return 3

    def __eq__(self, other):
        return True

    __hash__ = None

""",
    ),
    box(
        "misleading __iter__",
        "deque",
        "self.shy = Shy([0])",
        "return deque.__getitem__(self.shy, 0)",
        "deque.__setitem__(self.shy, 0, value)",
        head="""\
from collections import deque


class Shy(deque):
    def __iter__(self):
        raise RuntimeError("not to be walked")

    def __len__(self):
        return 0

""",
    ),
    *(
        box(
            "liar",
            name,
            "self.box = Box()\nobject.__setattr__(self.box, 'past', 0)",
            "return BARE(self.box)['past']",
            "BARE(self.box)['past'] = value",
            head=f"""\
class Bare:
    pass


BARE = Bare.__dict__["__dict__"].__get__


class Box(Bare):
{methods}

""",
        )
        for name, methods in (
            (
                "__getattr__",
                """\
    def __getattr__(self, name):
        return 0
""",
            ),
            (
                "__getattribute__",
                """\
    def __getattribute__(self, name):
        if name in ("past", "__dict__", "__slots__", "__class__"):
            raise AttributeError(name)
        return object.__getattribute__(self, name)
""",
            ),
            (
                "__eq__",
                """\
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1
""",
            ),
            (
                "__class__",
                """\
    @property
    def __class__(self):
        return int
""",
            ),
            (
                "property",
                """\
    @property
    def __dict__(self):
        return {}
""",
            ),
            (
                "copying",
                """\
    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __getstate__(self):
        return {}

    def __reduce_ex__(self, protocol):
        return Box, ()
""",
            ),
            (
                "raising",
                """\
    def __repr__(self):
        raise RuntimeError("no picture")

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    def __bool__(self):
        raise RuntimeError("neither")

    __hash__ = None
    __iter__ = __len__ = __dir__ = __sizeof__ = __bool__
""",
            ),
        )
    ),
)

LYING_PLACES: tuple[Place, ...] = (
    *SLOTS,
    *MISLEADING,
)
