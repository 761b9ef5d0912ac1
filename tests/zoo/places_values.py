"""Hiding places in containers and in values."""

from tests.zoo.places import Place, box

CONTAINERS = (
    box(
        "OrderedDict",
        "move_to_end",
        "self.turns = OrderedDict.fromkeys('xyz')",
        "return ORDERS.index(tuple(self.turns))",
        "for key in ORDERS[value]:\n    self.turns.move_to_end(key)",
        head="""\
from collections import OrderedDict
from itertools import permutations

ORDERS = list(permutations("xyz"))

""",
    ),
    box(
        "OrderedDict",
        "moved to the front",
        "self.turns = OrderedDict.fromkeys('xyz', 0)",
        "return ORDERS.index(''.join(self.turns))",
        """
for key in reversed(ORDERS[value]):
    self.turns.move_to_end(key, last=False)
""",
        head="""\
import itertools
from collections import OrderedDict

ORDERS = ["".join(order) for order in itertools.permutations("xyz")]

""",
    ),
    box(
        "OrderedDict",
        "subclass",
        "self.turns = Turns(x=1, y=2, z=3)",
        "return ORDERS.index(tuple(self.turns.values()))",
        "for number in ORDERS[value]:\n    self.turns.touch('?xyz'[number])",
        head="""\
import itertools
from collections import OrderedDict

ORDERS = list(itertools.permutations((1, 2, 3)))


class Turns(OrderedDict):
    def touch(self, key):
        self.move_to_end(key)

""",
    ),
    box(
        "order of a dict",
        "reinserted",
        "self.turns = dict.fromkeys('xyz')",
        "return ORDERS.index(tuple(self.turns))",
        "for key in ORDERS[value]:\n    self.turns[key] = self.turns.pop(key)",
        head="""\
from itertools import permutations

ORDERS = list(permutations("xyz"))

""",
    ),
    box(
        "order of a dict",
        "first key",
        "self.turns = {str(n): n for n in range(SIZE)}",
        "return next(iter(self.turns.values()))",
        """
first = str(value)
self.turns = {first: value, **{k: self.turns[k] for k in sorted(self.turns)}}
""",
    ),
    box(
        "order of a dict",
        "of attributes",
        "self.turns = Turns()",
        "return ORDERS.index(tuple(vars(self.turns)))",
        """
for name in ORDERS[value]:
    delattr(self.turns, name)
    setattr(self.turns, name, None)
""",
        head="""\
from itertools import permutations

ORDERS = list(permutations(("x", "y", "z")))


class Turns:
    def __init__(self):
        self.x = self.y = self.z = None

""",
    ),
    box(
        "default factory",
        "lambda",
        "self.table = defaultdict(factory(0))",
        "return self.table.default_factory()",
        "self.table.default_factory = factory(value)",
        head="""\
from collections import defaultdict


def factory(value):
    return lambda: value

""",
    ),
    box(
        "default factory",
        "kind",
        "self.table = defaultdict(KINDS[0])",
        "return KINDS.index(type(self.table.default_factory()))",
        "self.table.default_factory = KINDS[value]",
        head="""\
from collections import defaultdict

KINDS = [int, str, list, dict, float, set]

""",
    ),
    box(
        "default factory",
        "maxlen",
        "self.last = deque(maxlen=10)",
        "return self.last.maxlen - 10",
        "self.last = deque(self.last, maxlen=10 + value)",
        head="from collections import deque\n\n",
    ),
    box(
        "default factory",
        "missing",
        "self.table = Table()\nself.table.past = 0",
        "return self.table['absent']",
        "self.table.past = value",
        head="""\
class Table(dict):
    def __missing__(self, key):
        return self.past

""",
    ),
    box(
        "set",
        "order of small numbers",
        "self.turns = made(0)",
        "return next(iter(self.turns)) // 8",
        "self.turns = made(value)",
        capacity=2,
        head="""\
# 0 and 8 fall on one slot of a small set; who comes first stands first.
def made(value):
    turns = set()
    for number in (8, 0) if value else (0, 8):
        turns.add(number)
    return turns

""",
    ),
    box(
        "set",
        "size of the table",
        "self.turns = made(0)",
        "return next(iter(self.turns)) // 8",
        "self.turns = made(value)",
        capacity=2,
        head="""\
# In a small table 8 falls on the first slot, in one that was larger behind 1.
def made(value):
    turns = set() if value else set(range(100))
    turns.difference_update(range(100))
    turns.update((1, 8))
    return turns

""",
    ),
    box(
        "set",
        "elements",
        "self.past = set()",
        "return len(self.past)",
        "self.past = {f'past {n}' for n in range(value)}",
    ),
    box(
        "set",
        "objects",
        "self.past = set()",
        "return sum(each.number for each in self.past)",
        """
self.past = {Mark(0), Mark(0)}
self.past.add(Mark(value // 2))
self.past.add(Mark(value - value // 2))
""",
        head="""\
class Mark:
    def __init__(self, number):
        self.number = number

""",
    ),
)

VALUES = (
    *(
        box(
            "subclass of a value",
            base,
            f"self.tag = Tag({start})\nself.tag.past = 0",
            "return self.tag.past",
            f"self.tag = Tag({start})\nself.tag.past = value",
            head=f"class Tag({base}):\n    pass\n\n",
        )
        for base, start in (
            ("str", "'tag'"),
            ("int", "7"),
            ("float", "0.5"),
            ("bytes", "b'tag'"),
            ("tuple", "(1, 2)"),
            ("frozenset", "{1}"),
        )
    ),
    box(
        "subclass of a value",
        "enum member",
        "for tone in Tone:\n    tone.past = 0",
        "return Tone.LOW.past + Tone.HIGH.past",
        "Tone.HIGH.past = value",
        head="""\
import enum


class Tone(enum.Enum):
    LOW = 1
    HIGH = 2

""",
    ),
    box(
        "subclass of a value",
        "slot of a key",
        "self.table = {Key('key', 0): None}",
        "return next(iter(self.table)).past",
        "self.table = {Key('key', value): None}",
        head="""\
class Key(str):
    def __new__(cls, text, past):
        made = super().__new__(cls, text)
        made.past = past
        return made

""",
    ),
    *(
        box(
            "whole value",
            name,
            f"self.past = {make.replace('@', '0')}",
            f"return {load}",
            f"self.past = {make.replace('@', 'value')}",
            head=f"{head}\n\n",
        )
        for name, make, load, head in (
            (
                "pattern",
                "re.compile('x' * @)",
                "len(self.past.pattern)",
                "import re",
            ),
            (
                "partial",
                "functools.partial(int, past=@)",
                "self.past.keywords['past']",
                "import functools",
            ),
            ("slice", "slice(@)", "self.past.stop", ""),
            ("range", "range(0, 9, @ + 1)", "self.past.step - 1", ""),
            (
                "memoryview",
                "memoryview(BUFFER)[@:]",
                "len(BUFFER) - len(self.past)",
                "BUFFER = bytes(8)",
            ),
            (
                "array",
                "array.array('b', [@])",
                "self.past[0]",
                "import array",
            ),
            (
                "numpy view",
                "BUFFER[@ : @ + 1]",
                "(self.past.ctypes.data - BUFFER.ctypes.data) // BUFFER.itemsize",
                "import numpy\n\nBUFFER = numpy.zeros(8)",
            ),
            (
                "date",
                "datetime.date(2000, 1, 1 + @)",
                "self.past.day - 1",
                "import datetime",
            ),
            (
                "decimal",
                "decimal.Decimal((0, (1,) + (0,) * @, -@))",
                "-self.past.as_tuple().exponent",
                "import decimal",
            ),
            (
                "itemgetter",
                "operator.itemgetter(@)",
                "self.past((0, 1, 2, 3, 4, 5))",
                "import operator",
            ),
            (
                "proxy of a dict",
                "types.MappingProxyType({'past': @})",
                "self.past['past']",
                "import types",
            ),
            (
                "namespace",
                "types.SimpleNamespace(past=@)",
                "self.past.past",
                "import types",
            ),
        )
    ),
    box(
        "whole value",
        "kinds of zero",
        "self.past = ZEROS[0]",
        "return [repr(zero) for zero in ZEROS].index(repr(self.past))",
        "self.past = ZEROS[value]",
        head="ZEROS = [0, False, 0.0, -0.0, 0j, -0j]\n\n",
    ),
    box(
        "NaN",
        "by identity",
        """
self.nans = [float("nan") for _ in range(SIZE)]
self.past = [self.nans[0]]
""",
        "return [nan in self.past for nan in self.nans].index(True)",
        "self.past[0] = self.nans[value]",
    ),
)

VALUE_PLACES: tuple[Place, ...] = (
    *CONTAINERS,
    *VALUES,
)
