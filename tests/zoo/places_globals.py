"""Hiding places in modules: what is global, and the methods that are kept there."""

from tests.zoo.places import Place

GLOBALS = (
    Place(
        "module global",
        "dict",
        """\
_state = {}


class Registry(Frame):
    def load(self):
        return _state.get("past", 0)

    def store(self, value):
        _state["past"] = value


def create():
    _state.clear()
    return Registry()
""",
    ),
    Place(
        "module global",
        "list",
        """\
_past = []


class Registry(Frame):
    def load(self):
        return len(_past)

    def store(self, value):
        del _past[:]
        _past.extend("x" * value)


def create():
    _past.clear()
    return Registry()
""",
    ),
    Place(
        "module global",
        "another module",
        """\
import sys
import types

settings = types.ModuleType(__name__ + ".settings")
sys.modules[settings.__name__] = settings
settings.past = 0


class Registry(Frame):
    def load(self):
        return settings.past

    def store(self, value):
        settings.past = value


def create():
    settings.past = 0
    return Registry()
""",
    ),
    Place(
        "module global",
        "globals()",
        """\
class Registry(Frame):
    def load(self):
        return globals()["past"]

    def store(self, value):
        globals()["past"] = value


def create():
    globals()["past"] = 0
    return Registry()
""",
    ),
    Place(
        "rebound global",
        "number",
        """\
past = 0


class Registry(Frame):
    def load(self):
        return past

    def store(self, value):
        global past
        past = value


def create():
    global past
    past = 0
    return Registry()
""",
    ),
    Place(
        "rebound global",
        "None",
        """\
past = None


class Registry(Frame):
    def load(self):
        return 0 if past is None else past

    def store(self, value):
        global past
        past = value or None


def create():
    global past
    past = None
    return Registry()
""",
    ),
    Place(
        "rebound global",
        "deleted",
        """\
class Registry(Frame):
    def load(self):
        try:
            return past
        except NameError:
            return 0

    def store(self, value):
        global past
        past = value
        if not value:
            del past


def create():
    globals().pop("past", None)
    return Registry()
""",
    ),
    Place(
        "rebound global",
        "function",
        """\
def zero():
    return 0


current = zero


class Registry(Frame):
    def load(self):
        return current()

    def store(self, value):
        global current

        def answer():
            return value

        current = answer if value else zero


def create():
    global current
    current = zero
    return Registry()
""",
    ),
    Place(
        "nested code",
        "comprehension",
        """\
past = 0


class Registry(Frame):
    def load(self):
        return [(lambda: past)() for _ in "x"][0]

    def store(self, value):
        def inner():
            global past
            past = value

        inner()


def create():
    global past
    past = 0
    return Registry()
""",
    ),
    Place(
        "nested code",
        "three deep",
        """\
past = 0


class Registry(Frame):
    def load(self):
        def one():
            def two():
                return (lambda: (lambda: past)())()

            return two()

        return one()

    def store(self, value):
        def one():
            def two():
                global past
                past = value

            two()

        one()


def create():
    global past
    past = 0
    return Registry()
""",
    ),
    Place(
        "nested code",
        "generator",
        """\
past = 0


def reading():
    yield from (past for _ in range(1))


class Registry(Frame):
    def load(self):
        return next(number for number in reading())

    def store(self, value):
        def write():
            global past
            past = value
            yield

        list(write())


def create():
    global past
    past = 0
    return Registry()
""",
    ),
    Place(
        "nested code",
        "module attribute",
        """\
import sys

past = 0
here = sys.modules[__name__]


class Registry(Frame):
    def load(self):
        return (lambda: here.past)()

    def store(self, value):
        def write():
            here.past = value

        write()


def create():
    here.past = 0
    return Registry()
""",
    ),
)

METHODS = (
    Place(
        "methods in globals",
        "dict of bound methods",
        """\
class Past:
    def __init__(self, past):
        self.past = past

    def tell(self):
        return self.past


_methods = {}


class Registry(Frame):
    def load(self):
        tell = _methods.get("tell")
        return tell() if tell else 0

    def store(self, value):
        _methods["tell"] = Past(value).tell


def create():
    _methods.clear()
    return Registry()
""",
    ),
    Place(
        "methods in globals",
        "rebound method",
        """\
class Past:
    def __init__(self, past):
        self.past = past

    def tell(self):
        return self.past

    def move(self, past):
        self.past = past


_tell = _move = None


class Registry(Frame):
    def load(self):
        return _tell()

    def store(self, value):
        _move(value)


def create():
    global _tell, _move
    start = Past(0)
    _tell, _move = start.tell, start.move
    return Registry()
""",
    ),
    Place(
        "methods in globals",
        "method of a list",
        """\
_count = _append = _clear = None


class Registry(Frame):
    def load(self):
        return _count("x")

    def store(self, value):
        _clear()
        for _ in range(value):
            _append("x")


def create():
    global _count, _append, _clear
    held = []
    _count, _append, _clear = held.count, held.append, held.clear
    return Registry()
""",
    ),
    Place(
        "methods in globals",
        "cache by type",
        """\
_cache = {}


class Registry(Frame):
    def past_is(self, value):
        return value

    def load(self):
        found = _cache.get(type(self))
        return found[0](found[1]) if found else 0

    def store(self, value):
        _cache[type(self)] = (self.past_is, value)


def create():
    _cache.clear()
    return Registry()
""",
    ),
)

GLOBAL_PLACES: tuple[Place, ...] = (
    *GLOBALS,
    *METHODS,
)
