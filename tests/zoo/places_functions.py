"""Hiding places in functions: defaults, attributes, cells, constants."""

from tests.zoo.places import Place, box

FUNCTIONS = (
    Place(
        "mutable default",
        "list",
        """\
class Registry(Frame):
    def past(self, memory=[0]):
        return memory

    def load(self):
        return self.past()[0]

    def store(self, value):
        self.past()[0] = value


def create():
    Registry.past.__defaults__[0][0] = 0
    return Registry()
""",
    ),
    Place(
        "mutable default",
        "keyword",
        """\
def past(*, memory={}):
    return memory


class Registry(Frame):
    def load(self):
        return past().get("past", 0)

    def store(self, value):
        past()["past"] = value


def create():
    past().clear()
    return Registry()
""",
    ),
    Place(
        "mutable default",
        "rebound",
        """\
class Registry(Frame):
    def load(self, past=0):
        return past

    def store(self, value):
        Registry.load.__defaults__ = (value,)


def create():
    Registry.load.__defaults__ = (0,)
    return Registry()
""",
    ),
    Place(
        "mutable default",
        "of the undo",
        """\
def _cells(here=[0], there=[0]):
    return here, there


class Registry(Frame):
    def load(self):
        here, there = _cells()
        return here[0] + there[0]

    def store(self, value):
        here, there = _cells()
        here[0], there[0] = value // 2, value - value // 2


def create():
    for cell in _cells():
        cell[0] = 0
    return Registry()
""",
    ),
    Place(
        "function attribute",
        "of a method",
        """\
class Registry(Frame):
    def load(self):
        return getattr(Registry.load, "past", 0)

    def store(self, value):
        Registry.load.past = value


def create():
    vars(Registry.load).clear()
    return Registry()
""",
    ),
    Place(
        "function attribute",
        "of a function",
        """\
def tell():
    return tell.past


class Registry(Frame):
    def load(self):
        return tell()

    def store(self, value):
        tell.past = value


def create():
    tell.past = 0
    return Registry()
""",
    ),
    Place(
        "function attribute",
        "code",
        """\
def make(value):
    scope = {}
    exec(f"def tell(): return {value}", scope)
    return scope["tell"].__code__


CODES = [make(n) for n in range(SIZE)]


def tell():
    return 0


class Registry(Frame):
    def load(self):
        return tell()

    def store(self, value):
        tell.__code__ = CODES[value]


def create():
    tell.__code__ = CODES[0]
    return Registry()
""",
    ),
    Place(
        "function attribute",
        "doc",
        """\
def tell():
    pass


class Registry(Frame):
    def load(self):
        return len(tell.__doc__ or "")

    def store(self, value):
        tell.__doc__ = "x" * value or None


def create():
    tell.__doc__ = None
    return Registry()
""",
    ),
    Place(
        "closure cell",
        "nonlocal",
        """\
def create():
    past = 0

    class Registry(Frame):
        def load(self):
            return past

        def store(self, value):
            nonlocal past
            past = value

    return Registry()
""",
    ),
    Place(
        "closure cell",
        "pair",
        """\
def pair():
    past = 0

    def load():
        return past

    def store(value):
        nonlocal past
        past = value

    return load, store


class Registry(Frame):
    def __init__(self):
        super().__init__()
        self.load, self.store = pair()


def create():
    return Registry()
""",
    ),
    Place(
        "closure cell",
        "contents",
        """\
def cell_of():
    past = 0
    return (lambda: past).__closure__[0]


class Registry(Frame):
    def __init__(self):
        super().__init__()
        self.cell = cell_of()

    def load(self):
        return self.cell.cell_contents

    def store(self, value):
        self.cell.cell_contents = value


def create():
    return Registry()
""",
    ),
    Place(
        "closure cell",
        "chain",
        """\
def wrapped(inner, number):
    return lambda: inner() + number


class Registry(Frame):
    def __init__(self):
        super().__init__()
        self.load = lambda: 0

    def store(self, value):
        self.load = wrapped(wrapped(lambda: 0, value - value // 2), value // 2)


def create():
    return Registry()
""",
    ),
)

LAMBDAS = (
    box(
        "equal lambdas",
        "constants",
        "self.load = lambdas(0)",
        "return 0",
        "self.load = lambdas(value)",
        head="""\
def lambdas(n):
    # fmt: off
    return (lambda: 0) if n == 0 else (lambda: 1) if n == 1 else (lambda: 2) if n == 2 \
else (lambda: 3) if n == 3 else (lambda: 4) if n == 4 else (lambda: 5)

""",
    ),
    box(
        "equal lambdas",
        "types of constants",
        "self.past = lambdas(0)",
        "return KINDS.index(repr(self.past()))",
        "self.past = lambdas(value)",
        head="""\
KINDS = ["0", "False", "0.0", "-0.0"]


def lambdas(n):
    return [lambda: 0, lambda: False, lambda: 0.0, lambda: -0.0][n]

""",
        capacity=4,
    ),
    box(
        "equal lambdas",
        "defaults",
        "self.past = lambdas(0)",
        "return self.past()",
        "self.past = lambdas(value)",
        head="""\
def lambdas(value):
    return lambda past=value: past

""",
    ),
    box(
        "equal lambdas",
        "inner code",
        "self.past = lambdas(0)",
        "return self.past()()",
        "self.past = lambdas(value)",
        head="""\
def lambdas(n):
    return [lambda: lambda: 0, lambda: lambda: 1, lambda: lambda: 2, \
lambda: lambda: 3, lambda: lambda: 4, lambda: lambda: 5][n]

""",
    ),
    box(
        "equal lambdas",
        "names of attributes",
        "self.past = lambdas(0)",
        "return self.past(SIX)",
        "self.past = lambdas(value)",
        head="""\
class SIX:
    a, b, c, d, e, f = range(6)


def lambdas(n):
    return [lambda o: o.a, lambda o: o.b, lambda o: o.c, lambda o: o.d, \
lambda o: o.e, lambda o: o.f][n]

""",
    ),
)

FUNCTION_PLACES: tuple[Place, ...] = (
    *FUNCTIONS,
    *LAMBDAS,
)
