"""Methods of dataclasses: what Python makes for them, as texts that are compiled.

True only here: the words of `__init__`, `__eq__` and the comparisons of a dataclass,
and what a call of the class is given that the caller leaves out.

Rules:
- a method that the class has itself is not made;
- defaults and factories are filled in where the class is called: `__init__` is given
  every field;
- objects are equal, or come before each other, by the fields that count, the first that
  differ.
"""

import dataclasses
import linecache
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from runtime.schema.declaration import ScriptClassType
from runtime.script.emission.emitter import Emitter
from runtime.script.emission.python_class import Blueprint, Role
from runtime.script.emission.sugar import Arguments, sugar_of

_MISSING = dataclasses.MISSING
# Where Python's own come from.
_MADE = "<string>"
_ORDER = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def made_methods(
    made: Blueprint, declared: ScriptClassType, known: Any
) -> dict[str, tuple[Role, FunctionType]]:
    """The methods that a dataclass gets, by their names; none for another class."""
    python: Any = made.python
    if not dataclasses.is_dataclass(python):
        return {}
    parameters = vars(python)["__dataclass_params__"]
    texts = {}
    if parameters.init:
        texts["__init__"] = "\n".join(_init(python, made))
    fields = [each.name for each in made.fields if each.compare]
    if parameters.eq:
        texts["__eq__"] = "\n".join(_eq(fields))
    if parameters.order:
        for name, symbol in _ORDER.items():
            texts[f"__{name}__"] = "\n".join(_compared(name, symbol, fields))
    names: dict[str, Any] = {"__name__": python.__module__, "Owner": declared}
    for each in made.fields:
        names[f"type_{each.name}"] = declared.declaration.attributes[each.name]
        if each.default_factory is not _MISSING:
            names[f"new_{each.name}"] = each.default_factory
    return {
        name: (Role.METHOD, _function(made.python, name, text, names))
        for name, text in texts.items()
        if name not in known
    }


def _function(python: type, name: str, text: str, names: dict[str, Any]) -> Any:
    """The function that a text defines, with lines to be shown."""
    file = f"<{name} of {python.__module__}.{python.__qualname__}>"
    lines = [f"{each}\n" for each in text.split("\n")]
    linecache.cache[file] = len(text), None, lines, file
    exec(compile(text, file, "exec", dont_inherit=True), names)  # noqa: S102  # a text of this chapter
    made = names.pop(name)
    made.__qualname__ = f"{python.__qualname__}.{name}"
    return made


def _init(python: Any, made: Blueprint) -> Iterator[str]:
    plain = [each for each in made.fields if each.init and not each.kw_only]
    by_name = [each for each in made.fields if each.init and each.kw_only]
    parameters = ["self", *(f"{each.name}: type_{each.name}" for each in plain)]
    if by_name:
        parameters += ["*", *(f"{each.name}: type_{each.name}" for each in by_name)]
    yield f"def __init__({', '.join(parameters)}) -> None:"
    yield '    """Set every field."""'
    for each in made.fields:
        if each.init:
            yield f"    self.{each.name} = {each.name}"
        elif each.default_factory is not _MISSING:
            yield f"    self.{each.name} = new_{each.name}()"
    if hasattr(python, "__post_init__"):
        yield "    self.__post_init__()"


def _eq(fields: list[str]) -> Iterator[str]:
    yield "def __eq__(self, other: Owner) -> bool:"
    mine = "".join(f"self.{each}, " for each in fields)
    theirs = "".join(f"other.{each}, " for each in fields)
    yield f"    return ({mine}) == ({theirs})" if fields else "    return True"


def _compared(name: str, symbol: str, fields: list[str]) -> Iterator[str]:
    yield f"def __{name}__(self, other: Owner) -> bool:"
    for each in fields:
        yield f"    if self.{each} != other.{each}:"
        yield f"        return self.{each} {symbol} other.{each}"
    yield f"    return {'=' in symbol}"


def with_factories(e: Emitter, python: Any, arguments: Arguments) -> Arguments:
    """What the `__init__` of a class is given: with the defaults of a dataclass."""
    init = vars(python).get("__init__")
    code = getattr(init, "__code__", None)
    if not dataclasses.is_dataclass(python) or code is None:
        return arguments
    if code.co_filename != _MADE:
        return arguments
    fields = [each for each in dataclasses.fields(python) if each.init]
    places = [each.name for each in fields if not each.kw_only]
    given = {*places[: len(arguments.positional)], *arguments.named}
    named = dict(arguments.named)
    for each in fields:
        if each.name in given:
            continue
        if each.default is not _MISSING:
            named[each.name] = sugar_of(each.default, e)
        elif each.default_factory is not _MISSING:
            named[each.name] = sugar_of(each.default_factory, e).call(e, Arguments())
    return Arguments(arguments.positional, named)
