"""Breakers that hide in what a reader of objects may leave out."""

# ruff: noqa: E501  # each row of the table is one source text

from tests.state.breakers import Place

PLACES: dict[str, Place] = {}


# Attributes of the registry's own objects.
def _part(name: str, make: str, save: str, load: str, head: str = "") -> None:
    assert name not in PLACES
    PLACES[name] = Place(
        f"return {load}",
        save,
        init=f"self.box = {make}",
        head=f"import collections, contextlib, functools, io, pathlib, types, weakref\n{head}",
    )


_GENERATOR = "def generate():\n    yield 1\n    yield 2\n"
_STARTED = (
    f"{_GENERATOR}\ndef started():\n    it = generate()\n    next(it)\n    return it\n"
)
_part(
    "trace lines of a frame",
    "[started() for _ in range(LIMIT)]",
    "for at, it in enumerate(self.box): it.gi_frame.f_trace_lines = at < number",
    "sum(it.gi_frame.f_trace_lines for it in self.box)",
    _STARTED,
)
_part(
    "trace opcodes of a frame",
    "[started() for _ in range(LIMIT)]",
    "for at, it in enumerate(self.box): it.gi_frame.f_trace_opcodes = at < number",
    "sum(it.gi_frame.f_trace_opcodes for it in self.box)",
    _STARTED,
)
_part(
    "trace function of a frame",
    "started()",
    "self.box.gi_frame.f_trace = TRACES[number]",
    "TRACES.index(self.box.gi_frame.f_trace)",
    f"{_STARTED}\nTRACES = [functools.partial(print, n) for n in range(LIMIT + 1)]",
)
_part(
    "a local of a frame",
    "started()",
    "self.box.gi_frame.f_locals['hidden'] = number",
    "self.box.gi_frame.f_locals.get('hidden', 0)",
    _STARTED,
)
_part(
    "name of a generator",
    "started()",
    "self.box.__name__ = 'x' * number",
    "self.box.__name__.count('x')",
    _STARTED,
)
_part(
    "qualified name of a generator",
    "started()",
    "self.box.__qualname__ = 'x' * number",
    "self.box.__qualname__.count('x')",
    _STARTED,
)
_part(
    "newlines of a StringIO",
    "io.StringIO(newline=None)",
    "self.box = io.StringIO(newline=None); self.box.write(ENDS[number]); self.box.seek(0); self.box.truncate()",
    "SEEN.index(self.box.newlines)",
    "ENDS = ['', '\\n', '\\r', '\\r\\n', '\\n\\r', '\\n\\r\\r\\n']\n"
    "SEEN = [None, '\\n', '\\r', '\\r\\n', ('\\r', '\\n'), ('\\r', '\\n', '\\r\\n')]\n",
)
for slot in ("_hash", "_cached_cparts"):
    _part(
        f"{slot} of a path",
        "pathlib.PurePosixPath('a')",
        f"object.__setattr__(self.box, '{slot}', number)"
        if slot != "_str"
        else "self.box._str = str(number)",
        f"int(getattr(self.box, '{slot}'))",
    )
_part(
    "hash of a fraction",
    "fractions.Fraction(1)",
    "self.box.extra = number",
    "self.box.extra",
    "import fractions\nclass F(fractions.Fraction): pass\nfractions = types.SimpleNamespace(Fraction=F)\n",
)
_part(
    "doc of a property",
    "property(len)",
    "self.box = property(len, doc='x' * number)",
    "self.box.__doc__.count('x')",
)
_part(
    "doc of a property that is set",
    "Named(len)",
    "self.box.__doc__ = 'x' * number",
    "self.box.__doc__.count('x')",
    "class Named(property): pass\n",
)
_part(
    "attribute of a static method",
    "staticmethod(len)",
    "self.box.hidden = number",
    "self.box.hidden",
)
_part(
    "attribute of a class method",
    "classmethod(len)",
    "self.box.hidden = number",
    "self.box.hidden",
)
_part(
    "attribute of a partial",
    "functools.partial(len)",
    "self.box.hidden = number",
    "self.box.hidden",
)
_part(
    "attribute of an lru_cache",
    "functools.lru_cache(print)",
    "self.box.hidden = number",
    "self.box.hidden",
)
_part(
    "attribute of a weak reference",
    "Ref(Registry)",
    "self.box.hidden = number",
    "self.box.hidden",
    "class Ref(weakref.ref): pass\n",
)
_part(
    "docs of a function",
    "types.FunctionType((lambda: 1).__code__, {})",
    "self.box.__doc__ = 'x' * number",
    "(self.box.__doc__ or '').count('x')",
)
_part(
    "module of a function",
    "types.FunctionType((lambda: 1).__code__, {})",
    "self.box.__module__ = 'x' * number",
    "(self.box.__module__ or '').count('x')",
)
_part(
    "qualified name of a function",
    "types.FunctionType((lambda: 1).__code__, {})",
    "self.box.__qualname__ = 'x' * number",
    "self.box.__qualname__.count('x')",
)
_part(
    "first line of code",
    "types.FunctionType((lambda: 1).__code__, {})",
    "self.box.__code__ = self.box.__code__.replace(co_firstlineno=number + 1)",
    "self.box.__code__.co_firstlineno - 1",
)
_part(
    "file of code",
    "types.FunctionType((lambda: 1).__code__, {})",
    "self.box.__code__ = self.box.__code__.replace(co_filename='x' * number)",
    "self.box.__code__.co_filename.count('x')",
)
_part(
    "name of code",
    "types.FunctionType((lambda: 1).__code__, {})",
    "self.box.__code__ = self.box.__code__.replace(co_name='y' * number)",
    "self.box.__code__.co_name.count('y')",
)
_part(
    "doc of a class",
    "type('Kind', (), {})",
    "self.box.__doc__ = 'x' * number",
    "(self.box.__doc__ or '').count('x')",
)
_part(
    "abstract methods of a class",
    "type('Kind', (), {})",
    "self.box.__abstractmethods__ = ('x',) * number",
    "len(vars(self.box).get('__abstractmethods__', ()))",
)
_part(
    "depth of a traceback",
    "ValueError()",
    "self.box.__traceback__ = deep(number)",
    "depth(self.box.__traceback__)",
    "import sys\ndef deep(number):\n    tb = None\n    for _ in range(number):\n"
    "        tb = types.TracebackType(tb, sys._getframe(), 0, 1)\n    return tb\n"
    "def depth(tb):\n    n = 0\n    while tb:\n        n, tb = n + 1, tb.tb_next\n    return n\n",
)
_part(
    "instruction of a traceback",
    "ValueError()",
    "self.box.__traceback__ = types.TracebackType(None, FRAME, number * 2, 1)",
    "self.box.__traceback__.tb_lasti // 2",
    "import sys\nFRAME = sys._getframe()\n",
)
_part(
    "notes of an exception",
    "ValueError()",
    "self.box.__notes__ = ['x'] * number",
    "len(self.box.__notes__)",
)
_part(
    "suppressed contexts",
    "[ValueError() for _ in range(LIMIT)]",
    "for at, e in enumerate(self.box): e.__suppress_context__ = at < number",
    "sum(e.__suppress_context__ for e in self.box)",
)
_part(
    "payload of a NaN",
    "0.0",
    "self.box = nan(number)",
    "payload(self.box)",
    "import struct\ndef nan(n):\n    return struct.unpack('<d', struct.pack('<Q', 0x7ff8000000000000 + n))[0]\n"
    "def payload(x):\n    return struct.unpack('<Q', struct.pack('<d', x))[0] - 0x7ff8000000000000\n",
)
_part(
    "exponent of a decimal",
    "decimal.Decimal(1)",
    "self.box = decimal.Decimal((0, (1,), 0)).scaleb(0).quantize(decimal.Decimal((0, (1,), -number)))",
    "-self.box.as_tuple().exponent",
    "import decimal\n",
)
_part(
    "fold of a time",
    "[]",
    "self.box = [datetime.time(fold=at < number) for at in range(LIMIT)]",
    "sum(t.fold for t in self.box)",
    "import datetime\n",
)
_part(
    "cached normal deviate",
    "random.Random(0)",
    "self.box.gauss_next = number or None",
    "self.box.gauss_next or 0",
    "import random\n",
)
_part(
    "attribute of a system random",
    "random.SystemRandom()",
    "self.box.hidden = number",
    "self.box.hidden",
    "import random\n",
)
_part(
    "metadata of a dtype",
    "numpy.dtype('i4')",
    "self.box = numpy.dtype('i4', metadata={'n': number})",
    "(self.box.metadata or {}).get('n', 0)",
    "import numpy\n",
)
_part(
    "writability of arrays",
    "[numpy.zeros(1) for _ in range(LIMIT)]",
    "for at, each in enumerate(self.box): each.flags.writeable = at < number",
    "sum(each.flags.writeable for each in self.box)",
    "import numpy\n",
)
_part(
    "buffers that are exported",
    "bytearray(8)",
    "VIEWS[:] = [memoryview(self.box) for _ in range(number)]",
    "len(VIEWS)",
    "VIEWS = []\n",
)
_part(
    "maps of a chain",
    "collections.ChainMap()",
    "self.box.maps[:] = [{} for _ in range(number)]",
    "len(self.box.maps)",
)
_part(
    "data of a UserString",
    "collections.UserString('')",
    "self.box.data = 'x' * number",
    "len(self.box)",
)
_part(
    "safety of a uuid",
    "uuid.UUID(int=1)",
    "object.__setattr__(self.box, 'is_safe', number)",
    "int(self.box.is_safe)",
    "import uuid\n",
)
_part(
    "value of a semaphore",
    "threading.Semaphore(0)",
    "self.box._value = number",
    "self.box._value",
    "import threading\n",
)
_part(
    "state of a Barrier",
    "threading.Barrier(2)",
    "self.box._count = number",
    "self.box._count",
    "import threading\n",
)
_part(
    "removals of a WeakSet",
    "weakref.WeakSet()",
    "self.box._pending_removals[:] = [None] * number",
    "len(self.box._pending_removals)",
)
_part(
    "iterations of a WeakSet",
    "weakref.WeakSet()",
    "self.box._iterating = set(range(number))",
    "len(self.box._iterating)",
)
_part(
    "iterations of a WeakKeyDictionary",
    "weakref.WeakKeyDictionary()",
    "self.box._iterating = set(range(number))",
    "len(self.box._iterating)",
)
_part(
    "removals of a WeakValueDictionary",
    "weakref.WeakValueDictionary()",
    "self.box._pending_removals[:] = [None] * number",
    "len(self.box._pending_removals)",
)
_part(
    "cache of a logger",
    "logging.Logger('x')",
    "self.box._cache[99] = number",
    "self.box._cache.get(99, 0)",
    "import logging\n",
)
_part(
    "inverted member",
    "Kind.A",
    "Kind.A._inverted_ = number",
    "Kind.A._inverted_",
    "import enum\nclass Kind(enum.Flag):\n    A = 1\n",
)
_part(
    "table of members",
    "Kind.A",
    "Kind._value2member_map_[99] = number",
    "Kind._value2member_map_.get(99, 0)",
    "import enum\nclass Kind(enum.Flag):\n    A = 1\n",
)
_part(
    "slot names of a class",
    "Kind()",
    "Kind.__slotnames__ = ['x'] * number",
    "len(Kind.__slotnames__)",
    "class Kind: pass\n",
)
_part(
    "a cached property of the library",
    "ipaddress.ip_network('10.0.0.0/8')",
    "vars(self.box)['hostmask'] = number",
    "vars(self.box).get('hostmask', 0)",
    "import ipaddress\n",
)
_part(
    "cache of a single dispatch",
    "functools.singledispatch(print)",
    "vars(self.box)['_clear_cache'].__self__.data['x'] = number",
    "vars(self.box)['_clear_cache'].__self__.data.get('x', 0)",
)
_part(
    "cells of a dispatcher",
    "functools.singledispatch(print)",
    "cell(self.box).cell_contents = number",
    "cell(self.box).cell_contents or 0",
    "def cell(f):\n    d = f.dispatch\n    return d.__closure__[d.__code__.co_freevars.index('cache_token')]\n",
)
