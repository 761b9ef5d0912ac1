"""Data: values as JSON, and the bytes of tensors.

Every value that an archive can hold has one form:

    null, true, 1, 1.5, "a"        None, bool, int, float, str
    {"float": "nan"}               nan, inf, -inf
    {"complex": [re, im]}          a complex number, of floats as above
    {"tuple": [...]}               a tuple; with "named" and "fields", a named tuple
    {"enum": name, "member": m}    a member of an enum
    {"device": "cpu"}, {"dtype": "float32"}, {"layout": ...}, {"memory_format": ...}
    {"function": name}             a function of the archive
    {"manager": "no_grad"}         one of the few classes that a graph may call
    {"ref": n}                     the n-th entry of the table of shared values:
    {"list": [...]}, {"dict": [[key, value], ...]}
    {"object": class, "attributes": {...}}, {"module": type, "attributes": {...}, ...}
    {"tensor": storage, "dtype": ..., "shape": ..., "strides": ..., "offset": ...}

Rules:
- lists, dictionaries, objects, modules and tensors are written once, whatever the
  number of references, and may refer to each other in cycles;
- the bytes of a storage are written once, as in memory, little-endian;
- values without a form are refused, with type and place: futures, awaits, references to
  other processes, Python objects;
- decoding imports nothing by name, and calls nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any

from everyorder.runtime import autograd
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.nn import Parameter
from everyorder.runtime.schema.declared import (
    DeclaredType,
    InterfaceType,
    ModuleType,
    ScriptClassType,
)
from everyorder.runtime.schema.enums import (
    Device,
)
from everyorder.runtime.schema.subtyping import is_subtype
from everyorder.runtime.schema.types import (
    AnyType,
    DictType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    UnionType,
)
from everyorder.runtime.schema.values import INT_END, INT_FIRST, MISMATCH, converter
from everyorder.runtime.script.archive import container
from everyorder.runtime.script.archive.encoder import _PLAIN, CODES
from everyorder.runtime.script.archive.spelling import MANAGERS
from everyorder.runtime.script.ir.program import Function, declared_type
from everyorder.runtime.script.modules import ScriptModule
from everyorder.runtime.tensors import Tensor
from everyorder.runtime.tensors.storage import Storage


class MalformedArchive(ValueError):
    """A value violates the format; the message says how."""


class Decoder:
    """The decoder of JSON to values.

    `storage` returns a storage by its number, `find_type` and `find_function` resolve
    names in the archive.
    """

    def __init__(
        self,
        shared: Any,
        storage: Callable[[int], Storage],
        find_type: Callable[[str], DeclaredType],
        find_function: Callable[[str], Function],
        named: Callable[[TupleType], Any],
    ) -> None:
        self.storage = storage
        self.find_type = find_type
        self.find_function = find_function
        self.named = named
        self._texts = _list(shared, "the table of values")
        if len(self._texts) > container.MOST_VALUES:
            raise MalformedArchive(
                f"there are more than {container.MOST_VALUES} values"
            )
        self._values: list[Any] = [None] * len(self._texts)
        self._made = [False] * len(self._texts)
        # Values that are created, but not filled yet.
        self._waiting: list[int] = []

    def decode(self, text: Any) -> Any:
        """Return a value, with all values that it refers to."""
        value = self._one(text, 0)
        while self._waiting:
            self._fill(self._waiting.pop())
        return value

    def everything(self) -> Iterator[Any]:
        """Yield the decoded objects and modules of the table."""
        for text, value in zip(self._texts, self._values, strict=True):
            if value is not None and ("object" in text or "module" in text):
                yield value

    def _one(self, text: Any, depth: int) -> Any:
        if depth > container.MOST_DEPTH:
            raise MalformedArchive(
                f"values are nested more than {container.MOST_DEPTH} deep"
            )
        kind = text.__class__
        if kind in _PLAIN or kind is float:
            return text
        if kind is int:
            if not INT_FIRST <= text < INT_END:
                raise MalformedArchive("an int has more than 64 bits")
            return text
        if kind is not dict or not text:
            raise MalformedArchive(f"{_excerpt(text)} is not a value")
        word = next(iter(text))
        content = text[word]
        if word == "ref":
            return self._shared(content)
        read = getattr(self, f"_read_{word}", None) if word in _WORDS else None
        if read is None and word not in CODES:
            raise MalformedArchive(f"{_excerpt(word)} is not a kind of value")
        allowed = _WORDS.get(word, {word})
        for key in text:
            if key not in allowed:
                raise MalformedArchive(f"{_excerpt(key)} is not a part of a {word}")
        if read is None:
            return CODES[word].named(_text(content))
        return read(text, content, depth)

    def _read_float(self, text: Any, content: Any, depth: int) -> float:
        if content not in ("nan", "inf", "-inf"):
            raise MalformedArchive(f"{_excerpt(content)} is not a float")
        return float(content)

    def _read_complex(self, text: Any, content: Any, depth: int) -> complex:
        parts = [self._one(each, depth + 1) for each in _list(content, "a complex")]
        if len(parts) != 2 or any(each.__class__ is not float for each in parts):
            raise MalformedArchive("a complex number is two floats")
        return complex(*parts)

    def _read_tuple(self, text: Any, content: Any, depth: int) -> Any:
        parts = [self._one(each, depth + 1) for each in _list(content, "a tuple")]
        if "named" not in text:
            return tuple(parts)
        names = tuple(map(identifier, _list(text.get("fields"), "the fields")))
        if len(names) != len(parts) or len({*names}) != len(names):
            raise MalformedArchive("a named tuple has a name for each element")
        name = qualname(text["named"])
        python = self.named(TupleType((AnyType,) * len(names), names, name))
        # A method such as `_make` could be overridden by a subclass.
        return tuple.__new__(python, parts)

    def _read_enum(self, text: Any, content: Any, depth: int) -> Any:
        python: Any = self.find_type(_text(content)).declaration.python
        member = _text(text.get("member"))
        if not (isinstance(python, type) and issubclass(python, Enum)):
            raise MalformedArchive(f"{_excerpt(content)} is not an enum")
        if member not in python.__members__:
            raise MalformedArchive(
                f"{_excerpt(content)} has no member {_excerpt(member)}"
            )
        return python.__members__[member]

    def _read_device(self, text: Any, content: Any, depth: int) -> Device:
        return Device.parse(_text(content))

    def _read_manager(self, text: Any, content: Any, depth: int) -> Any:
        if content not in MANAGERS:
            raise MalformedArchive(f"{_excerpt(content)} is not a manager")
        return getattr(autograd, content)

    def _read_function(self, text: Any, content: Any, depth: int) -> Function:
        return self.find_function(_text(content))

    # The table

    def _shared(self, number: Any) -> Any:
        count = len(self._texts)
        if number.__class__ is not int or not 0 <= number < count:
            raise MalformedArchive(f"there is no value {_excerpt(number)} in the table")
        if not self._made[number]:
            self._made[number] = True
            self._values[number] = self._begin(self._texts[number])
            self._waiting.append(number)
        return self._values[number]

    def _begin(self, text: Any) -> Any:
        """Create a value of the table, still empty where it may refer to itself."""
        if text.__class__ is not dict or not text:
            raise MalformedArchive(f"{_excerpt(text)} is not a value of the table")
        word = next(iter(text))
        allowed = _SHARED.get(word)
        if allowed is None:
            raise MalformedArchive(
                f"{_excerpt(word)} is not a kind of value of the table"
            )
        for key in text:
            if key not in allowed:
                raise MalformedArchive(f"{_excerpt(key)} is not a part of a {word}")
        if word == "list":
            return []
        if word == "dict":
            return {}
        if word == "tensor":
            return self._tensor(text)
        of = self.find_type(_text(text[word]))
        if word == "module":
            if not isinstance(of, ModuleType):
                raise MalformedArchive(f"{of} is not a type of modules")
            return ScriptModule.__new__(ScriptModule)
        python = of.declaration.python
        if not isinstance(of, ScriptClassType) or python is None:
            raise MalformedArchive(f"{of} is not a class")
        return object.__new__(python)

    def _fill(self, number: int) -> None:
        text, value = self._texts[number], self._values[number]
        word = next(iter(text))
        if word == "list":
            value += [self._one(each, 0) for each in _list(text[word], "a list")]
        elif word == "dict":
            for pair in _list(text[word], "a dictionary"):
                key, each = _list(pair, "a pair", 2)
                # Only built-in values and tensors: hashing them runs no code of the
                # archive.
                decoded = self._one(key, 0)
                if not isinstance(
                    decoded, int | float | complex | str | Tensor | Device
                ):
                    raise MalformedArchive(f"a {type(decoded).__name__} is not a key")
                value[decoded] = self._one(each, 0)
        elif word == "object":
            declared = self.find_type(text[word])
            for name, each in self._attributes(declared, text):
                object.__setattr__(value, name, each)
        elif word == "module":
            self._fill_module(value, text)

    def _attributes(self, of: DeclaredType, text: Any) -> Iterator[tuple[str, Any]]:
        declared = of.declaration.attributes
        for name, each in _dict(text.get("attributes"), "attributes").items():
            if name not in declared:
                raise MalformedArchive(f"{of} has no attribute {_excerpt(name)}")
            yield name, self._one(each, 0)

    def _fill_module(self, value: ScriptModule, text: Any) -> None:
        of: Any = self.find_type(text["module"])
        values = dict(self._attributes(of, text))
        roles: dict[str, str] = {}
        for word, role in (("parameters", "parameter"), ("buffers", "buffer")):
            for name in _list(text.get(word), word):
                if name not in values or name in roles:
                    raise MalformedArchive(f"{_excerpt(name)} is none of the {word}")
                each = values[name]
                fits = Parameter if role == "parameter" else Tensor
                if each is not None and not isinstance(each, fits):
                    raise MalformedArchive(f"{_excerpt(name)} is not a {role}")
                roles[name] = role
        hooks = []
        for word in ("before", "behind"):
            names = tuple(map(_text, _list(text.get(word), word)))
            for name in names:
                if name not in of.declaration.methods:
                    raise MalformedArchive(f"{of} has no method {_excerpt(name)}")
            hooks.append(names)
        ScriptModule.__init__(value, of, values, roles, (hooks[0], hooks[1]))
        passing = map(_text, _list(text.get("passing"), "passing"))
        value._non_persistent_buffers_set.update(passing)

    def _tensor(self, text: Any) -> Tensor:
        from everyorder.runtime.tensors.construction import place_on
        from everyorder.runtime.tensors.dtype_info import itemsize, parse_dtype
        from everyorder.runtime.tensors.shape import check_bounds

        dtype = parse_dtype(_text(text.get("dtype")))
        shape = tuple(map(_size, _list(text.get("shape"), "a shape")))
        strides = tuple(map(_size, _list(text.get("strides"), "strides")))
        if len(shape) > container.MOST_DIMENSIONS:
            raise MalformedArchive(f"a tensor has {len(shape)} dimensions")
        offset = _size(text.get("offset"))
        storage = self.storage(_size(text["tensor"]))
        try:
            count = storage.nbytes() // itemsize(dtype)
            check_bounds(shape, strides, offset, count)
        except EveryorderError as error:
            raise MalformedArchive(str(error).partition("\n")[0]) from None
        tensor = place_on(storage, shape, strides, offset, dtype)
        wants = text.get("requires_grad") is True
        if wants and not (dtype.is_floating or dtype.is_complex):
            raise MalformedArchive(f"a tensor of {dtype.name} requires no gradient")
        if text.get("parameter") is True:
            return Parameter(tensor, wants)
        return tensor.requires_grad_() if wants else tensor


# First word of a value -> its allowed parts.
_WORDS: Mapping[str, frozenset[str]] = {
    "float": frozenset({"float"}),
    "complex": frozenset({"complex"}),
    "tuple": frozenset({"tuple", "named", "fields"}),
    "enum": frozenset({"enum", "member"}),
    "device": frozenset({"device"}),
    "function": frozenset({"function"}),
    "manager": frozenset({"manager"}),
}
_SHARED: Mapping[str, frozenset[str]] = {
    "list": frozenset({"list"}),
    "dict": frozenset({"dict"}),
    "object": frozenset({"object", "attributes"}),
    "module": frozenset(
        {
            *("module", "attributes", "parameters", "buffers"),
            *("passing", "before", "behind"),
        }
    ),
    "tensor": frozenset(
        {
            *("tensor", "dtype", "shape", "strides", "offset"),
            *("requires_grad", "parameter"),
        }
    ),
}


def _list(value: Any, what: str, count: int | None = None) -> list[Any]:
    if value.__class__ is not list or (count is not None and len(value) != count):
        raise MalformedArchive(f"{_excerpt(value)} is not {what}")
    result: list[Any] = value
    return result


def _dict(value: Any, what: str) -> dict[str, Any]:
    if value.__class__ is not dict:
        raise MalformedArchive(f"{_excerpt(value)} is not {what}")
    result: dict[str, Any] = value
    return result


def _text(value: Any) -> str:
    if value.__class__ is not str or len(value) > container.NAME_LENGTH:
        raise MalformedArchive(f"{_excerpt(value)} is not a name")
    result: str = value
    return result


def _size(value: Any) -> int:
    if value.__class__ is not int or not 0 <= value < INT_END:
        raise MalformedArchive(f"{_excerpt(value)} is not a size")
    result: int = value
    return result


def identifier(value: Any) -> str:
    """Return a name that is valid for fields, attributes and methods."""
    import keyword

    name = _text(value)
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__"):
        raise MalformedArchive(f"{_excerpt(name)} is not a name of a part")
    return name


def qualname(value: Any) -> str:
    """Return the full name of a type or function."""
    name = _text(value)
    parts = name.split(".")
    if parts[0] != "__torch__" or not all(map(str.isidentifier, parts[1:] or [""])):
        raise MalformedArchive(f"{_excerpt(name)} is not a full name")
    return name


def _excerpt(value: Any) -> str:
    text = (
        ascii(value) if isinstance(value, str | int | float) else type(value).__name__
    )
    return text if len(text) <= 60 else f"{text[:57]}..."


class Fits:
    """The type tests of values that stay alive; each pair is tested once."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[int, Type], bool] = {}

    def __call__(self, value: Any, type_: Type) -> bool:
        """Return True if a value is of a type; the reader limits the depth."""
        if not isinstance(type_, OptionalType | UnionType | ListType | DictType):
            if isinstance(type_, TupleType) and isinstance(value, tuple):
                return (
                    len(value) == len(type_.elements)
                    and getattr(value, "_fields", ()) == type_.names
                    and all(map(self, value, type_.elements))
                )
            own = declared_type(value) if isinstance(type_, InterfaceType) else None
            if own is not None:
                return is_subtype(own, type_)
            return converter(type_)(value) is not MISMATCH
        key = id(value), type_
        result = self._known.get(key)
        if result is None:
            result = self._known[key] = self._looks(value, type_)
        return result

    def _looks(self, value: Any, type_: Type) -> bool:
        if isinstance(type_, OptionalType):
            return value is None or self(value, type_.element)
        if isinstance(type_, UnionType):
            return any(self(value, each) for each in type_.members)
        if isinstance(type_, ListType):
            of = type_.element
            return value.__class__ is list and all(self(each, of) for each in value)
        assert isinstance(type_, DictType), "`__call__` handles other types"
        return value.__class__ is dict and all(
            self(key, type_.key) and self(each, type_.value)
            for key, each in value.items()
        )
