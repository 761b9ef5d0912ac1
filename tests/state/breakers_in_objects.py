"""Breakers that hide in objects that keep their contents in C."""

# ruff: noqa: E501  # each row of the table is one source text

from typing import Any

from tests.state.breakers import Place

PLACES: dict[str, Place] = {}

# What they hold is not read: memory that others may share, and fields of C.
_OPAQUE = ("memory map", "subclass of a memory map", "structure")


def _place(name: str, load: str, save: str, **others: Any) -> None:
    assert name not in PLACES
    PLACES[name] = Place(load, save, **others)


# Objects that keep their contents in C: how to make one, write and read a number.
# Each is once an attribute of the registry, and once a global of another package.
_CONTENTS = {
    "bytearray": ("bytearray(8)", "{o}[-1] = number", "{o}[-1]"),
    "subclass of bytearray": ("Bytes(8)", "{o}[-1] = number", "{o}[-1]"),
    "large bytearray": ("bytearray(1 << 20)", "{o}[-1] = number", "{o}[-1]"),
    "huge bytearray": ("bytearray((1 << 26) + 8)", "{o}[-1] = number", "{o}[-1]"),
    "array": ("array.array('q', [0] * 4)", "{o}[-1] = number", "{o}[-1]"),
    "subclass of array": ("Array('q', [0] * 4)", "{o}[-1] = number", "{o}[-1]"),
    "huge array": (
        "array.array('b', bytes((1 << 26) + 8))",
        "{o}[-1] = number",
        "{o}[-1]",
    ),
    "memoryview": ("memoryview(bytearray(8))", "{o}[-1] = number", "{o}[-1]"),
    "ndarray": ("numpy.zeros(4)", "{o}[-1] = number", "int({o}[-1])"),
    "subclass of ndarray": (
        "numpy.zeros(4).view(Grid)",
        "{o}[-1] = number",
        "int({o}[-1])",
    ),
    "matrix": (
        "numpy.zeros(4).view(numpy.matrix)",
        "{o}[0, -1] = number",
        "int({o}[0, -1])",
    ),
    "masked array": ("numpy.ma.zeros(4)", "{o}[-1] = number", "int({o}[-1])"),
    "record array": (
        "numpy.zeros(2, dtype=[('a', 'i4')]).view(numpy.recarray)",
        "{o}.a[-1] = number",
        "int({o}.a[-1])",
    ),
    "datetime64": (
        "numpy.zeros(4, 'M8[s]')",
        "{o}[-1] = numpy.datetime64(number, 's')",
        "int({o}[-1].astype(int))",
    ),
    "timedelta64": (
        "numpy.zeros(4, 'm8[s]')",
        "{o}[-1] = numpy.timedelta64(number, 's')",
        "int({o}[-1].astype(int))",
    ),
    "structure with dates": (
        "numpy.zeros(2, dtype=[('a', 'M8[s]')])",
        "{o}['a'][-1] = numpy.datetime64(number, 's')",
        "int({o}['a'][-1].astype(int))",
    ),
    "array of texts": ("numpy.zeros(2, 'U3')", "{o}[-1] = str(number)", "int({o}[-1])"),
    "array of half floats": (
        "numpy.zeros(2, 'f2')",
        "{o}[-1] = number",
        "int({o}[-1])",
    ),
    "array with gaps": ("numpy.zeros(8)[::2]", "{o}[-1] = number", "int({o}[-1])"),
    "array of rank 0": ("numpy.array(0)", "{o}[()] = number", "int({o})"),
    "array of objects": (
        "numpy.array([None, 0], dtype=object)",
        "{o}[-1] = number",
        "{o}[-1]",
    ),
    "huge ndarray": (
        "numpy.zeros((1 << 26) + 8, 'u1')",
        "{o}[-1] = number",
        "int({o}[-1])",
    ),
    "BytesIO": ("io.BytesIO(bytes(8))", "{o}.seek(number)", "{o}.tell()"),
    "StringIO": ("io.StringIO('x' * 8)", "{o}.seek(number)", "{o}.tell()"),
    "subclass of StringIO": ("Stream('x' * 8)", "{o}.seek(number)", "{o}.tell()"),
    "decimal context": ("decimal.Context()", "{o}.prec = number + 1", "{o}.prec - 1"),
    "flags of a decimal context": (
        "decimal.Context()",
        "set_flags({o}, number)",
        "sum({o}.flags.values())",
    ),
    "traps of a decimal context": (
        "decimal.Context(traps=[])",
        "set_traps({o}, number)",
        "sum({o}.traps.values())",
    ),
    "OrderedDict": (
        "collections.OrderedDict.fromkeys(range(LIMIT + 1))",
        "{o}.move_to_end(number)",
        "next(reversed({o}))",
    ),
    "hits of a cache": ("cached()", "set_hits({o}, number)", "{o}.cache_info().hits"),
    "misses of a cache": (
        "cached()",
        "set_misses({o}, number)",
        "{o}.cache_info().misses",
    ),
    "deque": (
        "collections.deque(range(LIMIT + 1))",
        "{o}.rotate(number - {o}[0])",
        "{o}[0]",
    ),
    "structure": ("Pair()", "{o}.b = number", "{o}.b"),
    "memory map": ("mmap.mmap(-1, 4096)", "{o}[-1] = number", "{o}[-1]"),
    "subclass of a memory map": ("Map(-1, 4096)", "{o}[-1] = number", "{o}[-1]"),
    "random generator": (
        "random.Random(0)",
        "{o}.seed(number)",
        "SEEDS.index({o}.getstate()[1][:-1])",
    ),
}
_HEAD = """
import array, collections, ctypes, decimal, functools, io, mmap, random

class Bytes(bytearray): pass
class Array(array.array): pass
class Stream(io.StringIO): pass
class Map(mmap.mmap): pass
class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_int)]
SIGNALS = (decimal.Inexact, decimal.Rounded, decimal.Clamped, decimal.Overflow, decimal.Underflow)
SEEDS = []

def set_flags(context, number):
    for at, signal in enumerate(SIGNALS):
        context.flags[signal] = at < number

def set_traps(context, number):
    for at, signal in enumerate(SIGNALS):
        context.traps[signal] = at < number

def cached():
    return functools.lru_cache(functools.partial(len))

def set_hits(cache, number):
    cache.cache_clear()
    for _ in range(number + 1):
        cache("x")

def set_misses(cache, number):
    cache.cache_clear()
    for each in range(number):
        cache("x" * each)
        cache.__wrapped__
"""
_NUMPY = "import numpy\nclass Grid(numpy.ndarray): pass\n"
for name, (make, save, load) in _CONTENTS.items():
    if name == "random generator":
        load = "[random.Random(n).getstate() for n in range(LIMIT + 1)].index({o}.getstate())"
    if name == "misses of a cache":
        save = "{o}.cache_clear(); [{o}('x' * each) for each in range(number)]"
    numpy = "numpy" in make
    head = _HEAD + (_NUMPY if numpy else "")
    mine, others = "self.box", "other.box"
    if "huge" not in name:  # each state would be read whole
        _place(
            f"{name} of the registry",
            f"return {load.format(o=mine)}",
            save.format(o=mine),
            init=f"self.box = {make}",
            head=head,
            opaque=name in _OPAQUE,
        )
    _place(
        f"{name} of another package",
        f"return {load.format(o=others)}",
        save.format(o=others),
        head=head,
        elsewhere=f"{head}\nLIMIT = 5\nbox = {make}",
        right=f"{load.format(o=others)} if number else other",
    )
# Objects of the process.
for name in ("DefaultContext", "BasicContext", "ExtendedContext"):
    for part in ("flags", "traps"):
        _place(
            f"{part} of decimal.{name}",
            f"return sum(decimal.{name}.{part}.values()) - base",
            f"set_{part}(decimal.{name}, number)",
            head=f"{_HEAD}\nbefore = dict(decimal.{name}.{part})\n"
            f"set_{part}(decimal.{name}, 0)\n"
            f"base = sum(decimal.{name}.{part}.values())",
            right="decimal.Decimal(1) / 3",
            restore=f"decimal.{name}.{part}.update(before)",
        )
_place(
    "flags of the current decimal context",
    "return sum(decimal.getcontext().flags.values())",
    "decimal.getcontext().clear_flags(); set_flags(decimal.getcontext(), number)",
    head=_HEAD,
    right="decimal.Decimal(number)",
)
for name, cache in {
    "fnmatch": "fnmatch._compile_pattern",
    "typing": "typing.Optional._getitem.__wrapped__",
    "functools": "other.cache",
}.items():
    if name == "typing":
        continue
    call = "fnmatch.fnmatch('x', 'x')" if name == "fnmatch" else "other.cache('x')"
    _place(
        f"hits of a cache of {name}",
        f"return min({cache}.cache_info().hits, LIMIT)",
        f"{cache}.cache_clear()\n[{call} for _ in range(number + 1)]",
        head="import fnmatch",
        elsewhere="import functools\ncache = functools.lru_cache(functools.partial(len))",
        right=call,
    )
