"""The objects that functions and modules reach: code, closures, defaults, globals.

A function reaches every global that its code, or nested code, loads or stores;
`module.attribute` for modules that are followed, as far as an unbroken chain of
attributes reaches; and its imports at run time.  That is so for code that an operation
executed (`executed_code.py`).  A module that is used in another way
is reached as a whole, and so are all globals of a function that reads them as a dict
(`globals()`, `eval`).

A global is written once in a walk, by the record that reads it first, as the number of
its module's dict, its name and its value.  Functions of one module share most of their
globals, so this costs little.
"""

import builtins
import functools
import sys
import types
from typing import Any

from everyorder.harness.state.code_value import Reads, read_code
from everyorder.harness.state.layout import (
    ABSENT,
    exact_name,
    layout_of,
    module_dict,
    module_of,
)
from everyorder.harness.state.noise import NOISE_IN_FUNCTOOLS
from everyorder.harness.state.scope import FACE, function_modules
from everyorder.harness.state.tokens import IGNORED, NOTHING, Space, Tokens

_BUILTINS = vars(builtins)
_ORIGINAL = dict(_BUILTINS)

_FUNCTOOLS = vars(functools)
_GENERIC = sys.version_info >= (3, 12)
# From 3.14 on, reading annotations runs code.
_EAGER = sys.version_info < (3, 14)

# State of the import system in a module.  A value of the classes of that system is
# described by its plain attributes, unless code names it: a loader may reach the whole
# test runner.
_OF_IMPORT = frozenset({"__builtins__", "__loader__", "__spec__"})
_IMPORTERS = frozenset(
    {"_frozen_importlib", "_frozen_importlib_external", "importlib", "zipimport"}
    | {"_pytest", "everyorder"}
)

# Marks a namespace that was described whole, as an instance of a subclass of dict.
_ITSELF = ("itself",)


def write_function(stream: Tokens, o: Any) -> None:
    """Write a function: by name if it is outside of the scope, else whole.

    The name and the docstring are written only if they differ from those of the code.
    There are many functions in every state, so this makes as few calls as possible.
    """
    values = o.__globals__
    module = o.__module__
    if type(module) is not str or not stream.inside.get(module):
        name = _outside(stream, o)
        if name:
            stream.emit_name("function", name)
            return
    out, numbers, order = stream.out, stream.seen, stream.order
    code = o.__code__
    number = numbers.get(id(code))
    if number is None:
        number = numbers[id(code)] = len(order)
        order.append(code)
    name = o.__qualname__
    if type(name) is not str:  # else its state would be lost
        stream.opaque.append(stream.number)
        name = str.__str__(name)
    out += ("function", name, number)
    read = read_code(code)
    if (
        o.__defaults__ is not None
        or o.__kwdefaults__ is not None
        or o.__doc__ is not read.text
        or o.__name__ is not code.co_name
        or module is not dict.get(values, "__name__", ABSENT)
        or o.__builtins__ is not _BUILTINS
        or (_GENERIC and o.__type_params__)
    ):
        _differences(stream, o, code, read.text)
    out.append(None)
    stream.emit_rare_dict(o.__dict__)
    if _EAGER:
        stream.emit_rare_dict(o.__annotations__)
    else:
        out.append(None)
    cells = o.__closure__
    if not cells:  # an empty tuple is possible
        out.append(0)
    else:
        out.append(len(cells))
        if values is _FUNCTOOLS:
            _exclude(stream, o, cells)
        for cell in cells:
            place = numbers.get(id(cell))
            if place is None:
                place = numbers[id(cell)] = len(order)
                order.append(cell)
            out.append(place)
        out.append(code.co_freevars)
    space = stream.spaces.get(id(values)) or _space(stream, values)
    out.append(space.number)
    if number not in space.done:  # `done` holds numbers of code, too
        space.done.add(number)
        if stream.executed is None or stream.executed.covers(code):
            if read.noise and any(map(stream.follows, function_modules(o))):
                stream.named |= read.noise
            _globals(stream, space, read.reads, o.__builtins__)
    out.append(None)


def write_reads(stream: Tokens, o: Any) -> None:
    """Write the globals that a function of the scope reads; its code was written.

    The function itself is written at another time, and no reference to it is kept.
    """
    code, module, values = o.__code__, o.__module__, o.__globals__
    number = stream.seen.get(id(code))
    if number is None or type(module) is not str or not stream.follows(module):
        return
    space = stream.spaces.get(id(values)) or _space(stream, values)
    if number not in space.done:
        space.done.add(number)
        if stream.executed is None or stream.executed.covers(code):
            read = read_code(code)
            stream.named |= read.noise
            _globals(stream, space, read.reads, o.__builtins__)


def _exclude(stream: Tokens, o: Any, cells: tuple[Any, ...]) -> None:
    """Exclude the caches in closures of a library function from the state.

    Other objects refer to them as well, such as the method that empties them.
    """
    caches = [
        cell
        for name, cell in zip(o.__code__.co_freevars, cells, strict=True)
        if name in NOISE_IN_FUNCTOOLS and _is_noise(name, cell)
    ]
    emptying = dict.get(o.__dict__, "_clear_cache")
    if type(emptying) is types.MethodType and NOISE_IN_FUNCTOOLS["dispatch_cache"](
        emptying.__self__
    ):
        caches.append(emptying.__self__)
    for each in caches:
        stream.exclude(each)


def _is_noise(name: str, cell: Any) -> bool:
    try:
        return NOISE_IN_FUNCTOOLS[name](cell.cell_contents)
    except ValueError:  # an empty cell
        return False


def _outside(stream: Tokens, o: Any) -> str:
    """Return the name of a function outside of the scope if it resolves, else ""."""
    module, real = function_modules(o)
    name = o.__qualname__
    if type(name) is not str or stream.follows(module) or stream.follows(real):
        return ""
    return f"{module}.{name}" if stream.resolve(module, name) is o else ""


def _differences(stream: Tokens, o: Any, code: types.CodeType, text: Any) -> None:
    """Write the properties of a function that differ from its code, labelled."""
    labels = ["__defaults__", "__kwdefaults__"]
    if _GENERIC and o.__type_params__:
        labels.append("__type_params__")
    read = [(label, getattr(o, label)) for label in labels]
    labelled = [(label, value) for label, value in read if value is not None]
    if o.__name__ is not code.co_name:
        labelled.append(("__name__", o.__name__))
    if o.__module__ is not dict.get(o.__globals__, "__name__", ABSENT):
        labelled.append(("__module__", o.__module__))
    if o.__doc__ is not text:
        labelled.append(("__doc__", o.__doc__))
    if o.__builtins__ is not _BUILTINS:
        labelled.append(("__builtins__", o.__builtins__))
    for label, value in labelled:
        stream.out.append(label)
        stream.emit(value)


def _globals(stream: Tokens, space: Space, reads: Reads, builtin_space: Any) -> None:
    """Write the globals that code reads, unless they were written before."""
    done = space.done
    if type(space.values) is not dict and _ITSELF not in done:
        # Its class may compute the names, and it may have attributes.
        done.add(_ITSELF)
        stream.out += (space.number, "__dict__")
        stream.emit(space.values)
    if reads.whole:
        _whole(stream, space)
    for name in reads.names:
        if name not in done:
            _global(stream, space, name, builtin_space)
    for chain in reads.chains:
        if chain not in done:
            done.add(chain)
            _chain(stream, space, chain)
    for level, module, names in reads.imports:
        _import(stream, space, level, module, names)


def write_code(stream: Tokens, o: types.CodeType) -> None:
    """Write a code object: a value, followed by constants that are objects."""
    value = read_code(o)
    stream.out += ("code", o.co_qualname, value.digest, len(value.strange))
    for place in value.strange:
        stream.emit(o.co_consts[place])


def write_module(stream: Tokens, o: Any) -> None:
    """Write a module: by name if it is outside of the scope, else all its globals."""
    values = module_dict(o)
    name = stream.look_up(values, "__name__")
    module_name = name if type(name) is str else ""
    if not stream.follows(module_name) and _loaded(stream, module_name) is o:
        stream.emit_name("module", module_name)
        return
    stream.out.append("module")
    stream.emit(name)
    stream.emit(type(o))
    plan = stream.plan(type(o))
    if plan.opaque:
        stream.opaque.append(stream.number)
    stream.slots(o, plan.slots)
    stream.out.append(NOTHING)
    space = _space(stream, values)
    stream.out.append(space.number)
    _whole(stream, space)
    stream.out.append(None)


def _space(stream: Tokens, values: dict[str, Any]) -> Space:
    """Return the globals of a module; the first call writes their number and name."""
    space = stream.spaces.get(id(values))
    if space is None:
        space = Space(len(stream.spaces), values, set())
        stream.spaces[id(values)] = space
        name = stream.look_up(values, "__name__")
        stream.out += ("space", space.number, name if type(name) is str else None)
    return space


def _whole(stream: Tokens, space: Space) -> None:
    """Write all globals of a module that are not written yet.

    If the set of their names is postponed, the present ones are written all the same.
    """
    if "*" in space.done or _ITSELF in space.done:
        return
    space.done.add("*")
    keys = [key for key in space.values if type(key) is str]
    arranged = sorted(keys)
    if (id(space.values), "*") in stream.deferred_names:
        stream.postponed.append((space, "*", _BUILTINS))
    else:
        if len(keys) < len(space.values):
            stream.out += (space.number, "__dict__")
            stream.emit(space.values)
        if arranged != keys:
            stream.orders.append((stream.number, space.number, tuple(keys)))
    for key in arranged:
        if type(space.values[key]) is types.BuiltinFunctionType:
            stream.functions.append(space.values[key])
        if key in space.done:
            continue
        if key in _OF_IMPORT and _is_of_import(space.values[key]):
            _import_state(stream, space, key)
        else:
            _global(stream, space, key, _BUILTINS)


def _is_of_import(value: Any) -> bool:
    usual = value is _BUILTINS or value is builtins or value is None
    return usual or module_of(type(value)).partition(".")[0] in _IMPORTERS


def _import_state(stream: Tokens, space: Space, name: str) -> None:
    """Write what a module says of its import, without what its loader reaches."""
    if (id(space.values), name) in stream.deferred_names:
        stream.postponed.append((space, name, _BUILTINS))
        return
    value = stream.look_up(space.values, name)
    stream.out += (space.number, name)
    if value is None:
        stream.out.append(None)
        return
    kind = type(value)
    dict_of = layout_of(kind).dict_of
    attributes = {} if value is _BUILTINS or dict_of is None else dict_of(value)
    plain = sorted(
        (key, each)
        for key, each in dict.items(attributes)
        if type(key) is str and not key.startswith("_") and type(each) is str
    )
    text = ", ".join(f"{key}={each!r}" for key, each in plain)
    stream.out.append((exact_name(kind), text))


def _global(stream: Tokens, space: Space, name: str, builtin_space: Any) -> None:
    """Write one global; if it is missing, look it up among the built-in names."""
    space.done.add(name)
    if stream.deferred_names and (id(space.values), name) in stream.deferred_names:
        stream.postponed.append((space, name, builtin_space))
        return
    value = stream.look_up(space.values, name)
    out = stream.out
    if value is ABSENT:
        value = stream.look_up(builtin_space, name)
        if value is ABSENT or value is _ORIGINAL.get(name, ABSENT):
            out += (space.number, name, NOTHING)
        else:
            out += (space.number, f"builtins.{name}")
            stream.emit(value)
        return
    out += (space.number, name)
    if stream.ignoring and stream.ignores_path(f"{_module_name(space)}.{name}"):
        out.append(IGNORED)
    elif issubclass(type(value), types.ModuleType):
        # Its attributes are written one by one; see `_chain`.
        module_name = stream.look_up(module_dict(value), "__name__")
        plain = type(value) is types.ModuleType
        if plain and type(module_name) is str and _loaded(stream, module_name) is value:
            out.append(("module", module_name))
        else:
            stream.emit(value)
    elif type(value) is types.BuiltinFunctionType and (
        module_name := _of_library(stream, value)
    ):
        # Not an object of this walk: if another object holds it, C code may call it,
        # which no profiler sees.
        out.append(("function", module_name))
    else:
        stream.emit(value)


def write_postponed(stream: Tokens, space: Space, name: str, builtins: Any) -> None:
    """Write a global, or all those of a module, that an earlier walk left out."""
    stream.out += ("postponed", space.number, name)
    stream.number = -1
    space.done.discard(name)
    if name == "*":
        _whole(stream, space)
    else:
        _global(stream, space, name, builtins)
        if issubclass(type(dict.get(space.values, name)), types.ModuleType):
            # The attributes that code reads of it are not written (`_chain`).
            stream.irregular = True


def _of_library(stream: Tokens, function: Any) -> str:
    """Return the name of a C function of a module if it resolves to it, else ""."""
    module, name = function.__module__, function.__qualname__
    if type(module) is not str or stream.resolve(module, name) is not function:
        return ""
    return f"{module}.{name}"


def _module_name(space: Space) -> object:
    return space.values.get("__name__")


def _chain(stream: Tokens, space: Space, chain: tuple[str, ...]) -> None:
    """Write what `module.attribute` reads; a module used otherwise is written whole."""
    value = dict.get(space.values, chain[0], ABSENT)
    for attribute in chain[1:]:
        inner = _followed(stream, value)
        if inner is None:
            value = _below_face(stream, value, attribute)
            if value is None:
                return
            continue
        if attribute == "__dict__":
            break
        value = _attribute(stream, inner, attribute)
    if _followed(stream, value) is not None:
        stream.out += (space.number, ".".join(chain))
        stream.emit(value)


def _attribute(stream: Tokens, space: Space, name: str) -> Any:
    """Write an attribute of a module, or the `__getattr__` that would compute it."""
    if name not in space.done:
        _global(stream, space, name, {})
    if name not in space.values:
        hook = "__getattr__"
        answers = stream.look_up(space.values, hook) is not ABSENT
        if answers and hook not in space.done:
            _global(stream, space, hook, {})
    return dict.get(space.values, name, ABSENT)


def _import(
    stream: Tokens, space: Space, level: int, name: str, names: tuple[str, ...] | None
) -> None:
    """Write the result of an import inside of a function."""
    absolute = name
    if level:
        package = stream.look_up(space.values, "__package__")
        above = package.split(".") if type(package) is str else []
        ancestors = above[: len(above) - level + 1]
        absolute = ".".join([*ancestors, name] if name else ancestors)
    if absolute == FACE and names:
        for each in names:
            _import(stream, space, 0, f"{FACE}.{each}", None)
        return
    key = ("import", absolute, names)
    if key in space.done or not stream.follows(absolute):
        return
    space.done.add(key)
    pieces = absolute.split(".")
    for end in range(1, len(pieces) + 1):
        path = ".".join(pieces[:end])
        module = _loaded(stream, path)
        stream.out += (space.number, f"import {path}", module is not None)
        inner = None if module is None else _followed(stream, module)
        if inner is None:
            if module is not None and not issubclass(type(module), types.ModuleType):
                stream.out += (space.number, f"import {path}")
                stream.emit(module)
            continue
        if names is None or "*" in names:
            stream.out += (space.number, f"import {path}")
            stream.emit(module)
        elif end == len(pieces):
            for each in names:
                value = _attribute(stream, inner, each)
                if _followed(stream, value) is not None:
                    stream.out += (space.number, f"import {path}.{each}")
                    stream.emit(value)


def _below_face(stream: Tokens, value: Any, name: str) -> Any:
    """Return a package of `everyorder` that is read as its attribute, or None."""
    if not issubclass(type(value), types.ModuleType):
        return None
    if stream.look_up(module_dict(value), "__name__") != FACE:
        return None
    return _loaded(stream, f"{FACE}.{name}")


def _followed(stream: Tokens, value: Any) -> Space | None:
    """Return the globals of a module that belongs to the scope, or None."""
    if not issubclass(type(value), types.ModuleType):
        return None
    values = module_dict(value)
    name = stream.look_up(values, "__name__")
    if type(name) is not str or not stream.follows(name):
        return None
    return _space(stream, values)


def _loaded(stream: Tokens, name: str) -> Any:
    """Return the imported module of a name, or None."""
    module = stream.look_up(sys.modules, name)
    return None if module is ABSENT else module
