"""The kinds of objects that are not plain instances, and a writer for each.

`HANDLERS` maps the id of a type to the function that writes one record for each of its
instances.  `decode.py` reads the records back: when you change a record here, change it
there.

*Suspended code* (generators, coroutines, the frames of tracebacks): the traverse
function returns all referents of a frame, in the order of its variables and its stack,
but leaves out unset variables.  `f_locals` shows which variables are set; the height of
the stack follows from the instruction.  Reading leaves no traces: until Python 3.12
`f_locals` makes a copy of the variables that stays with the frame; it is emptied again,
or restored to the result of an earlier call of `locals()`.

*Weak proxies*: every operation on a proxy applies to its target; only its repr is its
own, and shows an address.  The target is searched among all objects of the collector.
The collector does not list frozen objects: they are unfrozen, and the owner of the
freeze may want to repeat it (`thaws`).
"""

import gc
import re
import types
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

from everyorder.harness.state.accessors import LRU, accessor_of, cache_entries
from everyorder.harness.state.code_references import (
    write_code,
    write_function,
    write_module,
)
from everyorder.harness.state.layout import (
    ABSENT,
    Parts,
    bases_of,
    changeable,
    exact_name,
    flags_apart,
    is_abstract,
    module_of,
    mro_of,
    namespace_of,
    qualname_of,
    registered_and_answered,
    short_name_of,
)
from everyorder.harness.state.noise import FLAG_TABLE, is_noise_of_class
from everyorder.harness.state.scope import function_modules
from everyorder.harness.state.tokens import (
    IGNORED,
    PLACEHOLDER,
    Placeholder,
    Tokens,
    arrange,
    write_set,
)

_PREFIXES: dict[type, str] = {
    types.GeneratorType: "gi",
    types.CoroutineType: "cr",
    types.AsyncGeneratorType: "ag",
}
SUSPENDED: tuple[type, ...] = tuple(_PREFIXES)


def read_suspended(o: Any) -> Parts:
    """Return a generator or coroutine of any kind, by instruction and referents."""
    prefix = _PREFIXES[type(o)]
    parts: Parts = [
        ("name", o.__name__),
        ("qualname", o.__qualname__),
        ("code", getattr(o, f"{prefix}_code")),
        ("running", getattr(o, f"{prefix}_running")),
    ]
    frame = getattr(o, f"{prefix}_frame")
    if frame is None:
        parts.append(("finished", True))
    return parts + _variables(o, frame)


def read_frame(frame: types.FrameType) -> Parts:
    """Return a frame that ended, or still runs, by instruction and referents."""
    return [("code", frame.f_code), *_variables(frame, frame)]


def _variables(holder: Any, frame: types.FrameType | None) -> Parts:
    """Return the referents of a frame, with the names of the variables that are set."""
    if frame is None:
        return [("referent", each) for each in gc.get_referents(holder)]
    code = frame.f_code
    before = {
        id(each): each.copy() for each in gc.get_referents(holder) if type(each) is dict
    }
    local: Any = frame.f_locals
    candidates = dict.fromkeys(code.co_varnames + code.co_cellvars + code.co_freevars)
    bound = [name for name in candidates if name in local]
    # The frame of a module or a class body has its own dict there, which is not a copy.
    optimized = code.co_flags & 1  # inspect.CO_OPTIMIZED
    copied = optimized and type(local) is dict
    referents = gc.get_referents(holder)
    if copied:
        saved = before.get(id(local), {})
        local.clear()
        local.update(saved)
    # Drop f_back: the caller is not part of this frame's state.
    for extra in (frame.f_back, frame, local if copied else None):
        for place, each in enumerate(referents):
            if each is extra and extra is not None:
                del referents[place]
                break
    parts: Parts = [("at", frame.f_lasti), ("bound", tuple(bound))]
    # What a debugger sets: names that no variable has, and how the frame is traced.
    if copied:
        parts += [
            (f"f_locals[{name!r}]", each)
            for name, each in saved.items()
            if name not in candidates
        ]
    for name, usual in (
        ("f_trace", None),
        ("f_trace_lines", True),
        ("f_trace_opcodes", False),
    ):
        setting = getattr(frame, name)
        if setting is not usual:
            parts.append((name, setting))
    # The first referents are function, code and names; variables are identified by
    # place.
    parts += [("referent", each) for each in referents]
    return parts


PROXIES: tuple[type, ...] = (weakref.ProxyType, weakref.CallableProxyType)
_PROXIES = frozenset(map(id, PROXIES))
_ADDRESS = re.compile(r"0x([0-9a-fA-F]+)")

# The targets of proxies, by address.
_targets: dict[int, "weakref.ref[Any]"] = {}
# Proxies, with addresses, of targets that the collector does not know.
_unknown: set[tuple[int, int]] = set()
_thaws = 0


def proxy_target_id(o: Any) -> int | None:
    """Return the id of a weak proxy's target, or None if it is dead.

    A proxy's repr runs no code of the target.  That of a dead one shows only its own
    address, or that of None; the name of a class may be any text.
    """
    kind: Any = type(o)
    text: str = kind.__repr__(o)
    addresses = _ADDRESS.findall(text)
    address = int(addresses[-1], 16)
    return None if len(addresses) == 1 or address == id(None) else address


def proxy_target(o: Any, address: int) -> Any:
    """Return the target of a live proxy; `ABSENT` if it is unavailable."""
    target = _target_at(address)
    if target is None and (id(o), address) not in _unknown:
        # The search is slow in a large process, so all targets are searched at once.
        _find_all_targets()
        target = _target_at(address)
        if target is None:
            _unknown.add((id(o), address))
    return ABSENT if target is None else target


def thaws() -> int:
    """Return how often all frozen objects were unfrozen."""
    return _thaws


def _target_at(address: int) -> Any:
    reference = _targets.get(address)
    return None if reference is None else reference()


def _find_all_targets() -> None:
    global _thaws
    if gc.get_freeze_count():
        _thaws += 1
        gc.unfreeze()
    every = gc.get_objects()
    proxies = (each for each in every if id(type(each)) in _PROXIES)
    addresses = set(map(proxy_target_id, proxies))
    _targets.clear()
    _unknown.clear()
    for each in every:
        if id(each) in addresses:
            _targets[id(each)] = weakref.ref(each)


Handler: TypeAlias = Callable[[Tokens, Any], None]

_subclasses_of = type.__dict__["__subclasses__"]
_finalizers: Any = vars(weakref.finalize)["_registry"]

_PATTERN = re.compile("")  # its methods are of a type without a name

# The undo of most registries is a method of these, which hides no state.
_CONTAINERS = frozenset(map(id, (dict, list, set)))

# Replaces descriptors that follow from the class itself: slots and the like.
_OF_LAYOUT = ("", "slot")
_DESCRIPTORS = frozenset(
    map(id, (types.MemberDescriptorType, types.GetSetDescriptorType))
)
# Written separately from the attributes of an abstract class.
_OF_ABC = frozenset({"_abc_impl", "__abstractmethods__"})
_MAYBE_NOISE = (FLAG_TABLE, "__slotnames__")
_NOTHING: frozenset[str] = frozenset()
# Reading annotations creates an empty dict if there are none.
_ANNOTATIONS = "__annotations__"
# Python 3.13 writes it in the order of a set.
_STATIC = "__static_attributes__"


def _write_placeholder(stream: Tokens, _o: Any) -> None:
    stream.out.append("written")


def _set(stream: Tokens, o: Any) -> None:
    stream.out.append("set" if type(o) is set else "frozenset")
    write_set(stream, list(o), o)


def write_class(stream: Tokens, o: type) -> None:
    """Write a class: by name if it is outside of the scope, else whole.

    A class of C that Python cannot change is written as its name.
    """
    module = module_of(o)
    name = qualname_of(o)
    if type(name) is not str:  # else its state would be lost
        stream.opaque.append(stream.number)
        name = str.__str__(name)
    if is_named(stream, o):
        stream.emit_name("class", f"{module}.{name}")
        return
    out = stream.out
    out += ("class", module, name)
    meta = type(o)
    stream.emit(meta)
    if meta is not type and stream.plan(meta).opaque:
        stream.opaque.append(stream.number)
    for each in (bases_of(o), mro_of(o)[1:]):
        out.append(len(each))
        for base in each:
            stream.emit(base)
    _attributes(stream, o, f"{module}.{name}")
    below = [each for each in _subclasses_of(o) if stream.follows(module_of(each))]
    out.append(len(below))
    for each in below:
        stream.weak = stream.weak or not _permanent(stream, each)
        stream.emit(each)
    if not is_abstract(o):
        out.append(None)
        return
    methods = namespace_of(o).get("__abstractmethods__", ABSENT)
    if type(methods) is frozenset and all(type(each) is str for each in methods):
        methods = tuple(sorted(methods))
    out.append(True)
    stream.emit(methods)
    stream.abstract.append(o)
    if stream.defers is None:  # else each form contains these
        _answers(stream, stream.number, *registered_and_answered(o))


def write_answers(stream: Tokens, o: type) -> None:
    """Write what an abstract class registered and answered; the class was written."""
    every = registered_and_answered(o)
    if any(every):
        number = stream.seen[id(o)]
        stream.out += ("answers", number)
        _answers(stream, number, *every)


def _answers(stream: Tokens, number: int, *every: list[type]) -> None:
    for members in every:
        stream.out.append(len(members))
        if members:
            stream.waiting.append((number, members))
            stream.weak = stream.weak or not all(
                _permanent(stream, each) for each in members
            )


def is_named(stream: Tokens, o: type) -> bool:
    """Return True if a class is outside of the scope, and its name resolves to it."""
    module = module_of(o)
    if stream.follows(module):
        return False
    return not changeable(o) or (
        stream.resolve(module, str.__str__(qualname_of(o))) is o
    )


def _attributes(stream: Tokens, o: type, path: str) -> None:
    namespace = namespace_of(o)
    left_out = _OF_ABC if is_abstract(o) else _NOTHING
    entries = [
        (key, value)
        for key, value in namespace.items()
        if type(key) is not str
        or not (
            key in left_out
            or is_noise_of_class(o, key, value)
            or (key == _ANNOTATIONS and type(value) is dict and not value)
        )
    ]
    if short := short_name_of(o):
        entries.append(("type.__name__", short))
    if flags := flags_apart(o):
        entries.append(("type.__flags__", flags))
    if "__del__" in namespace:
        stream.weak = True
    for name in _MAYBE_NOISE:
        value = namespace.get(name)
        if value is not None and is_noise_of_class(o, name, value):
            stream.omitted.append((stream.number, name, value))
    out, emit = stream.out, stream.emit
    out.append(len(entries))
    for key, value in arrange(stream, entries):
        emit(key)
        kind = type(value)
        if kind is types.FunctionType and stream.ignoring is None:
            emit(value)
        elif (
            id(kind) in _DESCRIPTORS
            and value.__objclass__ is o
            and value.__name__ == key  # else it is an alias of another one
        ):
            out.append(_OF_LAYOUT)
        elif stream.ignoring and stream.ignores_path(f"{path}.{key}"):
            out.append(IGNORED)
        elif kind is tuple and type(key) is str and key == _STATIC:
            emit(tuple(sorted(value)))
        else:
            emit(value)


def _permanent(stream: Tokens, kind: type) -> bool:
    """Return True if a module holds a class under its name, so it is not garbage."""
    name = qualname_of(kind)
    return type(name) is str and stream.resolve(module_of(kind), name) is kind


def name_of(stream: Tokens, o: Any, kind: type) -> str:
    """Return the name of an opaque object outside of the scope if it resolves to it.

    Functions that C libraries make (ufuncs, those of Cython) are written by name, too.
    """
    if stream.follows(module_of(kind)):
        return ""
    plan = stream.plan(kind)
    own = (plan.dict_of and plan.dict_of(o)) or {}
    module = _text_attribute(o, kind, "__module__", own) or module_of(kind)
    for label in ("__qualname__", "__name__"):
        name = _text_attribute(o, kind, label, own)
        if name and not stream.follows(module) and stream.resolve(module, name) is o:
            return f"{module}.{name}"
    return ""


def _text_attribute(o: Any, kind: type, label: str, own: dict[str, Any]) -> str:
    """Return a text attribute of an object that C, or a wrapper, defines."""
    value = dict.get(own, label)
    for level in mro_of(kind):
        descriptor = namespace_of(level).get(label)
        if id(type(descriptor)) in _DESCRIPTORS and descriptor.__objclass__ is level:
            try:
                value = descriptor.__get__(o)
            except (AttributeError, TypeError):
                break
    return value if type(value) is str else ""


def _builtin(stream: Tokens, o: Any) -> None:
    owner = o.__self__
    if id(type(owner)) not in _CONTAINERS or o.__name__ == "__sizeof__":
        stream.functions.append(o)
    if owner is None or type(owner) is types.ModuleType:
        stream.emit_name("function", f"{o.__module__}.{o.__qualname__}")
        return
    stream.out += ("builtin", o.__qualname__)
    stream.emit(owner)


def _bound_slot(stream: Tokens, o: Any) -> None:
    stream.out += ("builtin", o.__qualname__)
    stream.emit(o.__self__)


def _descriptor(stream: Tokens, o: Any) -> None:
    stream.out += ("descriptor", o.__name__)
    stream.emit(o.__objclass__)


def _method_descriptor(stream: Tokens, o: Any) -> None:
    stream.functions.append(o)
    _descriptor(stream, o)


def _suspended(stream: Tokens, o: Any) -> None:
    stream.out.append("suspended")
    stream.emit(type(o))
    stream.parts(read_suspended(o))


def _frame(stream: Tokens, o: types.FrameType) -> None:
    stream.out.append("frame")
    if o.f_back is not None and id(o) not in stream.traced:
        stream.frames.append(stream.number)
    name = o.f_globals.get("__name__")
    if type(name) is str and stream.follows(name):
        stream.parts(read_frame(o))
    else:
        stream.parts([("code", o.f_code.co_qualname), ("at", o.f_lasti)])


def _traceback(stream: Tokens, o: types.TracebackType) -> None:
    stream.traces.append(stream.number)
    stream.traced.add(id(o.tb_frame))
    stream.out.append("traceback")
    parts: Parts = [("frame", o.tb_frame), ("at", o.tb_lasti), ("next", o.tb_next)]
    stream.parts(parts)


def _proxy(stream: Tokens, o: Any) -> None:
    kind = type(o)
    stream.weak = stream.irregular = True
    stream.out += ("proxy", exact_name(kind))
    parts: Parts = [("callback", each) for each in gc.get_referents(o)]
    address = proxy_target_id(o)
    target: Any = ABSENT
    if address is not None:
        number = stream.seen.get(address)
        target = PLACEHOLDER if number is None else stream.order[number]
        if target is PLACEHOLDER:
            target = proxy_target(o, address)
        if target is ABSENT:
            stream.opaque.append(stream.number)
    stream.parts([*parts, ("target", target)])


def _finalizer(stream: Tokens, o: Any) -> None:
    stream.weak = True
    stream.out.append("finalizer")
    info = _finalizers.get(o)
    parts: Parts = [("alive", info is not None)]
    if info is not None:
        parts += [
            ("target", info.weakref),
            ("func", info.func),
            ("args", info.args),
            ("kwargs", info.kwargs),
            ("atexit", info.atexit),
        ]
    stream.parts(parts)


def _cache(stream: Tokens, o: Any) -> None:
    """Write an lru_cache; its number of hits is part of the variants only.

    So is the order of its entries, as long as no cache of the function was full in any
    state: no call can observe it before an entry is dropped.  The first full cache is
    reported (`full_caches`), and the exploration restarts with orders.
    """
    stream.counters.append(stream.number)
    info = LRU.cache_info(o)
    stream.variants.append((stream.number, info.hits, info.misses))
    stream.out.append("cache")
    parts = _unordered_parts(stream, o, info)
    if parts is not None:
        stream.parts(parts)
        return
    accessor = accessor_of(LRU)
    if accessor is None:
        raise AssertionError("the table of known types has caches")
    stream.read(accessor, o)


# A cache of so few entries has no order before it is full.
_ORDERLESS = 2


def _unordered_parts(stream: Tokens, o: Any, info: Any) -> Parts | None:
    """Return the parts of a cache whose order is no state, or None."""
    read = cache_entries(o)
    if read is None:
        return None
    entries, others = read
    if info.maxsize is not None:
        name = _cache_name(others)
        if name in stream.scope.full or info.maxsize <= _ORDERLESS:
            return None
        if info.currsize >= info.maxsize:
            stream.full_caches.add(name)
            return None
    before = len(stream.orders)
    arranged = arrange(stream, entries)
    stream.variants += stream.orders[before:]
    del stream.orders[before:]
    return [
        ("maxsize", info.maxsize),
        ("currsize", info.currsize),
        *(("cached", each) for each in others),
        *(part for key, value in arranged for part in (("key", key), ("value", value))),
    ]


def _cache_name(others: list[Any]) -> str:
    """Return the name of a cached function, from its referents without entries."""
    for each in others:
        if type(each) is types.FunctionType:
            return ".".join((*function_modules(each), each.__qualname__))
    return ""


def _table(kinds: dict[type | tuple[type, ...], Handler]) -> dict[int, Handler]:
    return {
        id(kind): handler
        for keys, handler in kinds.items()
        for kind in (keys if type(keys) is tuple else (keys,))
    }


HANDLERS: dict[int, Handler] = _table(
    {
        Placeholder: _write_placeholder,
        (set, frozenset): _set,
        type: write_class,
        types.FunctionType: write_function,
        types.CodeType: write_code,
        types.ModuleType: write_module,
        (types.BuiltinFunctionType, type(_PATTERN.match)): _builtin,
        types.MethodWrapperType: _bound_slot,
        (
            types.WrapperDescriptorType,
            types.GetSetDescriptorType,
            types.MemberDescriptorType,
        ): _descriptor,
        (
            types.MethodDescriptorType,
            types.ClassMethodDescriptorType,
        ): _method_descriptor,
        SUSPENDED: _suspended,
        types.FrameType: _frame,
        types.TracebackType: _traceback,
        PROXIES: _proxy,
        weakref.finalize: _finalizer,
        LRU: _cache,
    }
)
