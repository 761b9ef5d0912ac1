"""Breakers that hide in what the form of an object may leave out.

These are fields of C that no attribute shows, what a reduction omits, and noise that
the code of the registry names.
"""

# ruff: noqa: E501  # each row of the table is one source text

from tests.state.breakers import Place

PLACES: dict[str, Place] = {}

_HEAD = "import collections, colorsys, enum, itertools, types, typing, weakref"


def _row(
    name: str,
    save: str,
    load: str,
    head: str = "",
    init: str = "pass",
    right: str = "",
    *,
    opaque: bool = False,
) -> None:
    assert name not in PLACES
    PLACES[name] = Place(
        f"return {load}",
        save,
        init=init,
        head=f"{_HEAD}\n{head}",
        right=right,
        opaque=opaque,
    )


def _bits(
    name: str, make: str, read: str, head: str = "", opaque: bool = False
) -> None:
    """Add a row of a list of `LIMIT` objects, each of which hides one bit.

    `make` makes one of `bit`, and `read` reads it of `one`.
    """
    source = f"def made(bit):\n    {make}\ndef bit_of(one):\n    {read}\n{head}"
    _row(
        name,
        "self.box = [made(at < number) for at in range(LIMIT)]",
        "sum(map(bit_of, self.box))",
        source,
        opaque=opaque,
    )


# Classes
_row(
    "alias of a slot",
    "for at in range(LIMIT): setattr(Job, f'front{at}', SLOTS['ab'[at < number]])",
    "sum(getattr(JOB, f'front{at}') for at in range(LIMIT))",
    "class Job: __slots__ = 'a', 'b'\nSLOTS = dict(vars(Job))\nJOB = Job()\nJOB.a, JOB.b = 0, 1\n",
)
_row(
    "alias of a getter",
    "for at in range(LIMIT): setattr(Job, f'x{at}', GETTERS[at < number])",
    "sum(getattr(JOB, f'x{at}') is not None for at in range(LIMIT))",
    "class Job: pass\nGETTERS = vars(Job)['__weakref__'], vars(Job)['__dict__']\nJOB = Job()\n",
)
_row(
    "flag of an abstract class",
    "for at, kind in enumerate(KINDS): abstract(kind, at < number)",
    "sum(map(is_abstract, KINDS))",
    """
KINDS = [type(f"Kind{at}", (), {}) for at in range(LIMIT)]

def abstract(kind, bit):
    kind.__abstractmethods__ = names = ["x"] * bit
    names.clear()

def is_abstract(kind):
    try:
        kind()
    except TypeError:
        return True
    return False
""",
)
# Properties
_DOC = 'def first(self): "text"\ndef second(self): "other"\n'
_bits(
    "origin of a docstring",
    "return property(first, doc='text') if bit else property(first)",
    "return one.getter(second).__doc__ == 'text'",
    _DOC,
)
_row(
    "origin of a docstring, in place",
    "for at, one in enumerate(BITS): one.__init__(first, None, None, *['text'] * (at < number))",
    "sum(one.getter(second).__doc__ == 'text' for one in BITS)",
    f"{_DOC}\nBITS = [property(first) for _ in range(LIMIT)]",
)
_bits(
    "name of a property",
    "one = property(); one.__set_name__(None, 'y' if bit else 'x'); return one",
    "\n    try: one.__get__(one)\n    except AttributeError as error: return \"'y'\" in str(error)",
)

# Iterators
_bits(
    "changes of a deque",
    "queue = collections.deque([1, 2]); it = iter(queue); bit and (queue.append(3), queue.pop()); return it",
    "\n    try: next(one)\n    except RuntimeError: return True\n    return False",
    opaque=True,
)
_bits(
    "changes of a deque, backwards",
    "queue = collections.deque([1, 2]); it = reversed(queue); bit and (queue.append(3), queue.pop()); return it",
    "\n    try: next(one)\n    except RuntimeError: return True\n    return False",
    opaque=True,
)
_row(
    "size of a set",
    "self.box = [made(at < number) for at in range(LIMIT)]",
    "sum(next(it, None) is None for table, it in self.box if not (table.discard(0), table.add(2))[1])",
    "def made(bit):\n    table = {3 if bit else 1}\n    it = iter(table)\n    next(it)\n    table.clear()\n    table.add(0)\n    return table, it\n",
    opaque=True,
)
for view in ("keys", "values", "items"):
    for way, answers in (("iter", "[None]"), ("reversed", "['q', 2, ('q', 2)]")):
        _row(
            f"place in {view}, {way}",
            "self.box = [made(at < number) for at in range(LIMIT)]",
            "sum(map(bit_of, self.box))",
            f"""
def made(bit):
    # The entry of the key that was deleted stays empty.
    table = dict.fromkeys("xab" if bit else "ab")
    table.pop("x", None)
    it = {way}(table.{view}())
    next(it)
    return table, it

def bit_of(one):
    table, it = one
    table.clear()
    table.update(p=1, q=2)
    return next(it, None) in {answers}
""",
            opaque=True,
        )
_GROUPS = """
class Runs:
    def __init__(self):
        self.queue = collections.deque()
        self.groups = itertools.groupby(iter(self.pull, None))
    def pull(self):
        return self.queue.popleft()
"""
_bits(
    "last key of groups",
    "runs = Runs(); runs.queue.append(bit); next(next(runs.groups)[1]); return runs",
    "one.queue.extend((1, 7)); return next(one.groups)[0] == 7",
    _GROUPS,
    opaque=True,
)
_bits(
    "end of zip_longest",
    "return started(itertools.zip_longest(iter([1, 2, 3].pop, None), Raising(bit)))",
    "return next(one, None) is None",
    """
def started(it):
    try:
        next(it)
    except ValueError:
        pass
    return it

class Raising:
    def __init__(self, bit):
        self.bit = bit
    def __iter__(self):
        return self
    def __next__(self):
        if self.bit:
            self.bit = False
            raise ValueError
""",
    opaque=True,
)

# References and aliases
_HASHED = """
class Thing:
    pass

def is_hashed(one):
    try:
        {one}
    except TypeError:
        return False
    return True
"""
_bits(
    "hash of a dead reference",
    "thing = Thing(); one = weakref.ref(thing); bit and {one}; return one",
    "return is_hashed(one)",
    _HASHED,
    opaque=True,
)
_bits(
    "hash of a living reference",
    "thing = Thing(); one = weakref.ref(thing); bit and {one}; return [thing, one]",
    "one.pop(0); return is_hashed(one[0])",
    _HASHED,
)
_row(
    "number that is the hash of a dead reference",
    "self.box = made(number)",
    "next(n for n in range(LIMIT + 1) if Probe(n) in {self.box})",
    """
class Thing:
    def __hash__(self):
        return self.number

class Probe(Thing):
    def __init__(self, number):
        self.number = number
    def __eq__(self, other):
        return True
    def __hash__(self):
        return self.number

def made(number):
    thing = Thing()
    thing.number = number
    one = weakref.ref(thing)
    {one}
    return one
""",
)
_bits(
    "parameters of an alias",
    "one = list[Arg()]; bit and one.__parameters__; one.__args__[0].__parameters__ = T; return one",
    "return one.__parameters__ == ()",
    "T = (typing.TypeVar('T'),)\nclass Arg: __parameters__ = ()\n",
)

# Namespaces
_bits(
    "attribute of a namespace",
    "space = Space(__name__=__name__); space.bit = bit; return types.FunctionType(made.__code__, space)",
    "return one.__globals__.bit",
    "class Space(dict): pass\n",
)
for attribute in ("__loader__", "__spec__", "__builtins__"):
    _row(
        f"{attribute} of a made module",
        f"setattr(PLUG, '{attribute}', number)",
        f"getattr(PLUG, '{attribute}')",
        "PLUG = types.ModuleType('plug')\n",
    )

# Noise that the code names
_row(
    "combined members of a flag",
    "for at in range(LIMIT): Kind._value2member_map_.pop(3 << at, None) if at >= number else Kind(3 << at)",
    "sum(3 << at in Kind._value2member_map_ for at in range(LIMIT))",
    "Kind = enum.Flag('Kind', 'A B C D E F')\n",
)
_row(
    "inverted members of a flag",
    "for at, each in enumerate(Kind): each._inverted_ = None if at >= number else Kind(0)",
    "sum(each._inverted_ is not None for each in Kind)",
    "Kind = enum.Flag('Kind', 'A B C D E')\n",
)
_row(
    "shown warnings of a library",
    "colorsys.__warningregistry__ = {('x', Warning, at): True for at in range(number)}",
    "len(colorsys.__warningregistry__)",
    right="self.number = 0",
)
