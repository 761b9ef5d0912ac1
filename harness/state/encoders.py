"""Kinds of objects that are no plain instances, and how each is written.

`HANDLERS` maps the id of a type to the function that writes one record for each of its
instances.  `records.py` reads the records back: when you change one here, change it
there.

*Suspended code* (generators, coroutines, the frames of tracebacks): the traverse
function gives all that a frame refers to, in the order of its variables and its stack,
but leaves out what is not set.  Which variables are set is asked of `f_locals`; where
the stack stands follows from the instruction.  Nothing is left behind: until Python
3.12 `f_locals` makes a copy of the variables that stays with the frame; it is emptied
again, or given back what a call of `locals()` had put there before.

*Weak proxies*: what is done to a proxy is done to what it points at; its own is nothing
but a repr, which tells an address.  The object there is looked for among all that the
collector knows.  It does not list what it was told to leave alone: that is thawed, and
whoever froze it may want to do so again (`thaws`).
"""

import enum
import gc
import re
import types
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

from everyorder.harness.state.accessors import LRU, accessor_of
from everyorder.harness.state.code_references import (
    write_code,
    write_function,
    write_module,
)
from everyorder.harness.state.layout import (
    ABSENT,
    Parts,
    bases_of,
    cached_answers,
    changeable,
    exact_name,
    is_abstract,
    module_of,
    mro_of,
    namespace_of,
    qualname_of,
    short_name_of,
    virtual_subclasses,
)
from everyorder.harness.state.scope import NOISE_OF_CLASSES, NOISE_OF_FLAGS
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
    """A generator or coroutine of any kind, by instruction and referents."""
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
    """A frame that ended, or still runs, by instruction and referents."""
    return [("code", frame.f_code), *_variables(frame, frame)]


def _variables(holder: Any, frame: types.FrameType | None) -> Parts:
    """What a frame refers to, labelled by variable where that is certain."""
    if frame is None:
        return [("referent", each) for each in gc.get_referents(holder)]
    code = frame.f_code
    before = {
        id(each): each.copy() for each in gc.get_referents(holder) if type(each) is dict
    }
    local: Any = frame.f_locals
    candidates = dict.fromkeys(code.co_varnames + code.co_cellvars + code.co_freevars)
    bound = [name for name in candidates if name in local]
    # A module or a class body has its own dict there, which is not a copy.
    optimized = code.co_flags & 1  # inspect.CO_OPTIMIZED
    copied = optimized and type(local) is dict
    held = gc.get_referents(holder)
    if copied:
        saved = before.get(id(local), {})
        local.clear()
        local.update(saved)
    # Who called is no variable, and where that stands by now is nobody's business.
    for extra in (frame.f_back, frame, local if copied else None):
        for place, each in enumerate(held):
            if each is extra and extra is not None:
                del held[place]
                break
    parts: Parts = [("at", frame.f_lasti), ("bound", tuple(bound))]
    # The referents begin with function, code and names; variables are told by place.
    parts += [("referent", each) for each in held]
    return parts


PROXIES: tuple[type, ...] = (weakref.ProxyType, weakref.CallableProxyType)
_PROXIES = frozenset(map(id, PROXIES))
_ADDRESS = re.compile(r"0x([0-9a-fA-F]+)")

# What proxies point at, by its address.
_targets: dict[int, "weakref.ref[Any]"] = {}
# Proxies, and addresses, of what the collector does not know.
_unknown: set[tuple[int, int]] = set()
_thaws = 0


def proxy_target_id(o: Any) -> int | None:
    """The id of what a weak proxy points at, or None where that is dead.

    A proxy's repr asks nothing of the target.  That of a dead one tells its own address
    alone, or that of None; a class may be called as it likes.
    """
    kind: Any = type(o)
    text: str = kind.__repr__(o)
    addresses = _ADDRESS.findall(text)
    address = int(addresses[-1], 16)
    return None if len(addresses) == 1 or address == id(None) else address


def proxy_target(o: Any, address: int) -> Any:
    """What a live proxy points at, at this address; `ABSENT` if it cannot be had."""
    found = _target_at(address)
    if found is None and (id(o), address) not in _unknown:
        # It takes long where much is loaded, so that all are looked for at once.
        _look_for_all()
        found = _target_at(address)
        if found is None:
            _unknown.add((id(o), address))
    return ABSENT if found is None else found


def thaws() -> int:
    """How often all was thawed that collections were to leave alone."""
    return _thaws


def _target_at(address: int) -> Any:
    known = _targets.get(address)
    return None if known is None else known()


def _look_for_all() -> None:
    global _thaws
    if gc.get_freeze_count():
        _thaws += 1
        gc.unfreeze()
    every = gc.get_objects()
    proxies = (each for each in every if id(type(each)) in _PROXIES)
    wanted = set(map(proxy_target_id, proxies))
    _targets.clear()
    _unknown.clear()
    for each in every:
        if id(each) in wanted:
            _targets[id(each)] = weakref.ref(each)


Handler: TypeAlias = Callable[[Tokens, Any], None]

_subclasses_of = type.__dict__["__subclasses__"]
_finalizers: Any = vars(weakref.finalize)["_registry"]

_PATTERN = re.compile("")  # its methods are of a type without a name

# The undo of most registries is a method of these, which hides nothing.
_CONTAINERS = frozenset(map(id, (dict, list, set)))

# What stands for descriptors that the class itself tells: slots and the like.
_OF_LAYOUT = ("", "slot")
_DESCRIPTORS = frozenset(
    map(id, (types.MemberDescriptorType, types.GetSetDescriptorType))
)
# Told beside the attributes of an abstract class.
_OF_ABC = frozenset({"_abc_impl", "__abstractmethods__"})
# Who looks at them makes an empty dict where there were none.
_ANNOTATIONS = "__annotations__"
# Python 3.13 writes it in the order of a set.
_STATIC = "__static_attributes__"


def _written(stream: Tokens, _o: Any) -> None:
    stream.out.append("written")


def _set(stream: Tokens, o: Any) -> None:
    stream.out.append("set" if type(o) is set else "frozenset")
    write_set(stream, list(o), o)


def write_class(stream: Tokens, o: type) -> None:
    """Write a class: by name if it is outside of the scope, else whole.

    What C made, and Python cannot change, is no more than its name.
    """
    module = module_of(o)
    name = qualname_of(o)
    if type(name) is not str:  # the object that it is would be left out
        stream.opaque.append(stream.number)
        name = str.__str__(name)
    if not stream.follows(module) and (
        not changeable(o) or stream.resolve(module, name) is o
    ):
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
    for members in (virtual_subclasses(o), *cached_answers(o)):
        out.append(len(members))
        if members:
            stream.waiting.append((stream.number, list(members)))
            stream.weak = stream.weak or not all(
                _permanent(stream, each) for each in members
            )


def _attributes(stream: Tokens, o: type, path: str) -> None:
    namespace = namespace_of(o)
    left_out = _OF_ABC | NOISE_OF_CLASSES if is_abstract(o) else NOISE_OF_CLASSES
    if any(each is enum.Flag for each in mro_of(o)):
        left_out |= NOISE_OF_FLAGS
    entries = [
        (key, value)
        for key, value in namespace.items()
        if type(key) is not str
        or not (
            key in left_out
            or (key == _ANNOTATIONS and type(value) is dict and not value)
        )
    ]
    if short := short_name_of(o):
        entries.append(("type.__name__", short))
    if "__del__" in namespace:
        stream.weak = True
    out, emit = stream.out, stream.emit
    out.append(len(entries))
    for key, value in arrange(stream, entries):
        emit(key)
        kind = type(value)
        if kind is types.FunctionType and stream.ignoring is None:
            emit(value)
        elif id(kind) in _DESCRIPTORS and value.__objclass__ is o:
            out.append(_OF_LAYOUT)
        elif stream.ignoring and stream.ignores_path(f"{path}.{key}"):
            out.append(IGNORED)
        elif kind is tuple and type(key) is str and key == _STATIC:
            emit(tuple(sorted(value)))
        else:
            emit(value)


def _permanent(stream: Tokens, kind: type) -> bool:
    """Whether a module holds a class under its name, so that it is no garbage."""
    name = qualname_of(kind)
    return type(name) is str and stream.resolve(module_of(kind), name) is kind


def name_of(stream: Tokens, o: Any, kind: type) -> str:
    """The name of an opaque object outside of the scope, if it yields this very object.

    Functions that C libraries make (ufuncs, those of Cython) are names like all others.
    """
    if stream.follows(module_of(kind)):
        return ""
    plan = stream.plan(kind)
    own = plan.dict_of(o) if plan.dict_of is not None else {}
    module = _told(o, kind, "__module__", own) or module_of(kind)
    for label in ("__qualname__", "__name__"):
        name = _told(o, kind, label, own)
        if name and not stream.follows(module) and stream.resolve(module, name) is o:
            return f"{module}.{name}"
    return ""


def _told(o: Any, kind: type, label: str, own: dict[str, Any]) -> str:
    """What C, or a wrapper, says of an object by an attribute."""
    value = dict.get(own, label)
    for level in mro_of(kind):
        found = namespace_of(level).get(label)
        if id(type(found)) in _DESCRIPTORS and found.__objclass__ is level:
            try:
                value = found.__get__(o)
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
    stream.weak = True
    stream.out += ("proxy", exact_name(kind))
    parts: Parts = [("callback", each) for each in gc.get_referents(o)]
    address = proxy_target_id(o)
    found: Any = ABSENT
    if address is not None:
        number = stream.seen.get(address)
        found = PLACEHOLDER if number is None else stream.order[number]
        if found is PLACEHOLDER:
            found = proxy_target(o, address)
        if found is ABSENT:
            stream.opaque.append(stream.number)
    stream.parts([*parts, ("target", found)])


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
    """An lru_cache; how often it was hit belongs to the exact form alone."""
    stream.counters.append(stream.number)
    info = LRU.cache_info(o)
    stream.variants.append((stream.number, info.hits, info.misses))
    stream.out.append("cache")
    accessor = accessor_of(LRU)
    if accessor is None:
        raise AssertionError("the table of known types has caches")
    stream.read(accessor, o)


def _table(kinds: dict[type | tuple[type, ...], Handler]) -> dict[int, Handler]:
    return {
        id(kind): handler
        for keys, handler in kinds.items()
        for kind in (keys if type(keys) is tuple else (keys,))
    }


HANDLERS: dict[int, Handler] = _table(
    {
        Placeholder: _written,
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
