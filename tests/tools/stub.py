"""Stubs: what a type checker is told of methods, functions and operators.

Names that are installed when the runtime is imported cannot be seen by a checker; they
are written down in a module that exists as a stub only, `runtime.declared`, which is
made of the declarations and never by hand:

    python -m tests.tools.stub            says whether it is as it should be
    python -m tests.tools.stub --write    writes it

Rules: an argument may be written as people write it (a dtype by name, one size for
several), and a result is what it is; a function that chooses among operators says its
own types, and `CHOICES` those that depend on the arguments.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from inspect import Parameter, Signature, getsource, signature
from pathlib import Path
from typing import Any, TypeVar

from everyorder.runtime.base.locks import load
from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.operators.bindings import functions
from everyorder.runtime.operators.declare.handles import NAMESPACE
from everyorder.runtime.schema.enums import DType, MemoryFormat
from everyorder.runtime.schema.schema import NUMBERS_AS_TENSORS, Schema
from everyorder.runtime.schema.signature import Argument, OperatorName
from everyorder.runtime.schema.types import (
    IntType,
    ListType,
    OptionalType,
    SymIntType,
    Type,
    unwrap_optional,
)
from everyorder.runtime.tensors.tensor import METHODS, Tensor
from everyorder.runtime.tensors.tensor_impl import TensorBase

FILE = Path(__file__).parents[2] / "runtime" / "declared.pyi"

# The type of a schema -> that of an argument.
TYPES = {
    "Tensor": "Tensor",
    "int": "builtins.int",
    "SymInt": "builtins.int",
    "float": "builtins.float",
    "bool": "builtins.bool",
    "complex": "builtins.complex",
    "str": "builtins.str",
    "Scalar": "Number",
    "ScalarType": "DType | builtins.str | builtins.type[Any]",
    "Device": "Device | builtins.str",
    "Generator": "Generator",
    "MemoryFormat": "MemoryFormat",
    "Layout": "Layout",
}

_ONE = "Tensor"
_PAIR = "Ordered"
_SIZES = "builtins.int | Sequence[builtins.int]"
_BOOL = "builtins.bool = ..."
_OUT = "out: Tensor | None = ..."
_PAIR_OUT = "out: Sequence[Tensor] | None = ..."
_MANY = "tuple[Tensor, ...]"
# What depends on the arguments: the parameters behind the tensor, and the result.
CHOICES: dict[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(
        ("max", "min"),
        (
            (f"*, {_OUT}", _ONE),
            (f"dim: builtins.int, keepdim: {_BOOL}, *, {_PAIR_OUT}", _PAIR),
            (f"other: Tensor, *, {_OUT}", _ONE),
        ),
    ),
    **dict.fromkeys(
        ("var", "std"),
        (
            (
                f"dim: {_SIZES} | None = ..., *, correction: Number | None = ..., "
                f"keepdim: {_BOOL}, {_OUT}",
                _ONE,
            ),
            (
                f"dim: {_SIZES} | None = ..., unbiased: {_BOOL}, keepdim: {_BOOL}, "
                f"*, {_OUT}",
                _ONE,
            ),
        ),
    ),
    "median": (
        (f"*, {_OUT}", _ONE),
        (f"dim: builtins.int, keepdim: {_BOOL}, *, {_PAIR_OUT}", _PAIR),
    ),
    "unique": tuple(
        (f"sorted: {_BOOL}, {flags}, dim: builtins.int | None = ...", result)
        for flags, result in (
            (
                "return_inverse: Literal[False] = ..., "
                "return_counts: Literal[False] = ...",
                _ONE,
            ),
            (f"*, return_inverse: Literal[True], return_counts: {_BOOL}", _MANY),
            (f"return_inverse: {_BOOL}, *, return_counts: Literal[True]", _MANY),
        )
    ),
    "view": (
        ("*size: builtins.int", _ONE),
        (f"size: {_SIZES}", _ONE),
        ("dtype: DType", _ONE),
    ),
    "nonzero": (
        ("*, as_tuple: Literal[False] = ..., out: Tensor | None = ...", _ONE),
        ("*, as_tuple: Literal[True]", _MANY),
    ),
}
# The same of functions that are no methods, or are other ones; all parameters.
_POOL = (
    f"self: Tensor, kernel_size: {_SIZES}, stride: {_SIZES} | None = ..., "
    f"padding: {_SIZES} = ..., dilation: {_SIZES} = ..., ceil_mode: {_BOOL}, *, "
)
FUNCTION_CHOICES: dict[str, tuple[tuple[str, str], ...]] = {
    "max_pool2d": (
        (f"{_POOL}return_indices: Literal[False] = ...", _ONE),
        (f"{_POOL}return_indices: Literal[True]", "tuple[Tensor, Tensor]"),
    ),
    **dict.fromkeys(
        ("std_mean", "var_mean"),
        tuple(
            (
                f"self: Tensor, dim: {_SIZES} | None = ..., {choice}",
                "tuple[Tensor, Tensor]",
            )
            for choice in (
                f"*, correction: Number | None = ..., keepdim: {_BOOL}",
                f"unbiased: {_BOOL}, keepdim: {_BOOL}",
            )
        ),
    ),
    "where": (
        ("condition: Tensor", _MANY),
        ("condition: Tensor, self: Tensor | Number, other: Tensor | Number", _ONE),
    ),
}
_NUMBER = "Tensor | Number"
# The arguments of functions written by hand that take, by their own words, anything.
ARGUMENTS = {
    "device": "Device | builtins.str | builtins.int | None",
    "dilation": _SIZES,
    "dim": f"{_SIZES} | None",
    "dtype": f"{TYPES['ScalarType']} | None",
    "end": "Number | None",
    "fill_value": "Number",
    "high": _SIZES,
    "input": _NUMBER,
    "inputs": "Tensor | Sequence[Tensor] | None",
    "max": f"{_NUMBER} | None",
    "memory_format": "MemoryFormat | None",
    "min": f"{_NUMBER} | None",
    "operands": "Tensor | Sequence[Tensor]",
    "other": _NUMBER,
    "out": "Tensor | None",
    "p": "Number | builtins.str",
    "q": _NUMBER,
    "padding": f"{_SIZES} | builtins.str",
    "repeats": "Tensor | builtins.int",
    "size": _SIZES,
    "split_size": _SIZES,
    "src": _NUMBER,
    "start": "Number",
    "step": "Number",
    "stride": _SIZES,
    "tensors": "Tensor | Sequence[Tensor]",
    "value": _NUMBER,
    "weight": _NUMBER,
}
# What `to` takes by its place: a tensor, a dtype, a device, and two words of truth.
_TARGET = f"Tensor | {TYPES['ScalarType']} | Device | builtins.bool | None"
# What the head of a stub imports, and Python's own types.
KNOWN = {
    *("Callable", "DType", "Device", "Generator", "Kind", "Layout", "MemoryFormat"),
    *("Ordered", "RemovableHandle", "Sequence", "Storage", "Tensor", "Any", "None"),
    *("bool", "float", "int", "list", "object", "str", "tuple", "type"),
}
# Functions that give other things than a tensor, and do not say what.
PAIRED = ("cummax", "cummin", "sort", "topk")
RESULTS = {
    **dict.fromkeys(PAIRED, _PAIR),
    "meshgrid": _MANY,
    "__setitem__": "None",
}
# Operators of Python that any other object may be the other side of.
_IN_PLACE = ("__i",)


def taken(kind: Type, as_number: bool = False) -> str:
    """What an argument of a type may be given as."""
    if isinstance(kind, OptionalType):
        return f"{taken(unwrap_optional(kind), as_number)} | None"
    if isinstance(kind, ListType):
        if unwrap_optional(kind.element) in (IntType, SymIntType):
            return "builtins.int | Sequence[builtins.int]"
        return f"Sequence[{taken(kind.element)}]"
    name = TYPES.get(str(kind), "Any")
    return f"{name} | Number" if name == "Tensor" and as_number else name


def given(schema: Schema) -> str:
    """What an operator returns."""
    kinds = [_given(each.type) for each in schema.returns]
    if len(kinds) == 1:
        return kinds[0]
    return f"tuple[{', '.join(kinds)}]" if kinds else "None"


def _given(kind: Type) -> str:
    if isinstance(kind, OptionalType):
        return f"{_given(unwrap_optional(kind))} | None"
    if isinstance(kind, ListType):
        return f"list[{_given(kind.element)}]"
    return {"ScalarType": "DType", "Device": "Device"}.get(
        str(kind), TYPES.get(str(kind), "Any")
    )


def _parameters(schema: Schema, as_number: bool, sizes: bool) -> Iterator[str]:
    """The arguments; `sizes` says that the only one by place may come one by one."""
    named = False
    for argument in schema.arguments:
        kind = taken(argument.type, as_number)
        if argument.kwarg_only and not named:
            named = True
            if not sizes:
                yield "*"
        if sizes and not argument.kwarg_only and _is_sizes(argument):
            yield f"*{argument.name}: builtins.int"
            continue
        default = " = ..." if argument.has_default else ""
        yield f"{argument.name}: {kind}{default}"


def _is_sizes(argument: Argument) -> bool:
    return unwrap_optional(argument.type) == ListType(IntType)


def _takes_sizes(schema: Schema) -> bool:
    by_place = [each for each in schema.arguments[1:] if not each.kwarg_only]
    return len(by_place) == 1 and _is_sizes(by_place[0])


def _schema_of(name: str) -> tuple[Schema, bool] | None:
    """The schema of an operator, and whether it takes numbers for tensors."""
    state = default_dispatcher().state
    entry = state.entry(OperatorName(f"{NAMESPACE}::{name}"))
    if entry is None or not entry.definitions or entry.schema is None:
        return None
    return entry.schema, NUMBERS_AS_TENSORS in entry.definitions[0].tags


def _has_out(name: str) -> bool:
    return default_dispatcher().state.entry(
        OperatorName(f"{NAMESPACE}::{name}", "out")
    ) is not None  # fmt: skip


def of_operator(name: str, method: bool, one_by_one: bool = False) -> str:
    """The line of a function or a method that is one operator.

    `one_by_one`: with the numbers of its only list as arguments of their own.
    """
    found = _schema_of(name)
    assert found is not None, "it is asked of operators"
    schema, as_number = found
    # One that is written by hand may give a class of its own.
    special = RESULTS.get(name)
    parameters = [*_parameters(schema, as_number, one_by_one)]
    result = special or given(schema)
    if method:
        parameters[0] = "self"
        if name.endswith("_") and result == "Tensor":
            result = "Self"
    elif _has_out(name):
        out = _PAIR_OUT if name in PAIRED else _OUT
        parameters += [out] if "*" in parameters else ["*", out]
    return f"def {name}({', '.join(parameters)}) -> {result}: ..."


def of_function(name: str, function: Callable[..., Any], method: bool) -> str:
    """The line of a function or a method that is written by hand."""
    told = signature(function)
    parameters, named = [], False
    for each in told.parameters.values():
        default = "" if each.default is Parameter.empty else " = ..."
        if each.kind is Parameter.VAR_POSITIONAL:
            named = True
            kind = _TARGET if name == "to" else ARGUMENTS.get(each.name, "Any")
            parameters.append(f"*{each.name}: {kind}")
        elif each.kind is Parameter.VAR_KEYWORD:
            parameters += _options(name, each.name, named)
        elif each.name == "self":
            parameters.append("self" if method else "self: Tensor")
        else:
            if each.kind is Parameter.KEYWORD_ONLY and not named:
                named = True
                parameters.append("*")
            kind = _annotated(each.annotation)
            # An item may be set to whatever makes a tensor.
            if kind == "Any" and name[:2] != "__":
                kind = ARGUMENTS.get(each.name, kind)
            parameters.append(f"{each.name}: {kind}{default}")
    if method and not parameters[0].startswith("self"):
        # The tensor comes first, whatever it is called there.
        parameters[:1] = (
            ["self", *parameters[:1]] if parameters[0][0] == "*" else ["self"]
        )
    result = RESULTS.get(name) or _annotated(told.return_annotation)
    if method and name[-1] == "_" != name[0] and result in ("Any", "Tensor"):
        result = "Self"
    if result == "Any" and name not in RESULTS and _computes(function):
        result = "Tensor"
    return f"def {name}({', '.join(parameters)}) -> {result}: ..."


def _options(name: str, rest: str, named: bool) -> Iterator[str]:
    """The keyword arguments that a function hands on to its operator."""
    found = _schema_of(name)
    if found is None or rest not in ("options", "kwargs"):
        yield f"**{rest}: Any"
        return
    options = [each for each in found[0].arguments if each.kwarg_only]
    if not named:
        yield "*"
    for each in options:
        yield f"{each.name}: {taken(each.type)} = ..."
    if name != "to" and any(each.name == "dtype" for each in options):
        yield f"requires_grad: {_BOOL}"
        if _has_out(name):
            yield "out: Tensor | None = ..."


def _computes(function: Callable[..., Any]) -> bool:
    """Whether a function is one of operators, which give tensors."""
    return function.__module__.startswith("everyorder.runtime.operators")


def _annotated(annotation: Any) -> str:
    """An annotation, if the stub knows its names."""
    if annotation in (Parameter.empty, Signature.empty):
        return "Any"
    if isinstance(annotation, TypeVar):
        return "Kind"
    text = annotation if isinstance(annotation, str) else None
    if text is None:
        text = getattr(annotation, "__name__", "") or str(annotation)
        if "[" in str(annotation) or "|" in str(annotation):
            text = str(annotation)
    text = re.sub(r"(everyorder|typing|collections)(\.\w+)*\.", "", text)
    text = text.replace("NoneType", "None").replace("~T", "Kind")
    try:
        tree = ast.parse(text)
    except SyntaxError:
        # A type of the schema language.
        return "Any"
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if not names <= KNOWN:
        return "Any"
    # Methods and dtypes have the names of Python's types.
    return re.sub(r"\b(int|float|bool|str|type)\b", r"builtins.\1", text)


def _declared_by_hand() -> set[str]:
    """The names that the class says itself."""
    found = set()
    for node in ast.walk(ast.parse(getsource(TensorBase) + getsource(Tensor))):
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {each.id for each in node.targets if isinstance(each, ast.Name)}
    return found


def methods() -> Iterator[str]:
    """The lines of the class of methods."""
    by_hand = _declared_by_hand()
    for name, method in sorted(METHODS.items()):
        if name in by_hand:
            continue
        if isinstance(method, property):
            told = signature(method.fget) if method.fget is not None else Signature()
            kind = _annotated(told.return_annotation)
            if name in ("real", "imag"):
                kind = "Tensor"
            yield f"@property\ndef {name}(self) -> {kind}: ..."
            if method.fset is not None:
                value = "Tensor" if name == "data" else _NUMBER
                yield f"@{name}.setter\ndef {name}(self, value: {value}) -> None: ..."
        elif name in CHOICES:
            for parameters, result in CHOICES[name]:
                yield f"@overload\ndef {name}(self, {parameters}) -> {result}: ..."
        elif isinstance(method, staticmethod):
            yield f"@staticmethod\n{of_function(name, method.__func__, method=False)}"
        elif name.startswith("__") and name not in ("__getitem__", "__setitem__"):
            yield _of_python(name, method)
        elif name.startswith("new_") and name != "new_tensor":
            yield from _of_new(name)
        elif _is_operator(method) or name in PAIRED:
            schema = _schema_of(name)
            if schema is not None and _takes_sizes(schema[0]):
                overloads = (of_operator(name, True, sizes) for sizes in (True, False))
                yield from (f"@overload\n{line}" for line in overloads)
            else:
                yield of_operator(name, method=True)
        else:
            yield of_function(name, method, method=True)


def _of_new(name: str) -> Iterator[str]:
    """The lines of `new_zeros` and its like."""
    options = ", ".join(_options(name, "options", True))
    if name == "new_full":
        sizes = [f"size: {_SIZES}, fill_value: Number, *"]
    else:
        sizes = ["*size: builtins.int", f"size: {_SIZES}, *"]
    for size in sizes:
        mark = "@overload\n" if len(sizes) > 1 else ""
        yield f"{mark}def {name}(self, {size}, {options}) -> Tensor: ..."


def _is_operator(function: Callable[..., Any]) -> bool:
    """Whether a function is one operator, as its documentation says."""
    return "Schema: `" in (function.__doc__ or "")


def _of_python(name: str, method: Callable[..., Any]) -> str:
    """The line of an operator of Python, whose other side may be anything."""
    count = len(signature(method).parameters)
    other = ", other: Any" if count > 1 else ""
    result = "Self" if name.startswith(_IN_PLACE) and name != "__invert__" else "Tensor"
    line = f"def {name}(self{other}) -> {result}: ..."
    return f"{line}  # type: ignore[override]" if name in ("__eq__", "__ne__") else line


def names() -> Iterator[str]:
    """The lines of the module: functions, then dtypes and formats."""
    for name in sorted(functions.FUNCTIONS):
        if name in CHOICES:
            for parameters, result in CHOICES[name]:
                line = f"def {name}(self: Tensor, {parameters}) -> {result}: ..."
                yield f"@overload\n{line}"
        elif name in FUNCTION_CHOICES:
            for parameters, result in FUNCTION_CHOICES[name]:
                yield f"@overload\ndef {name}({parameters}) -> {result}: ..."
        elif name in functions.OPERATORS or name in PAIRED:
            yield of_operator(name, method=False)
        else:
            yield of_function(name, getattr(functions, name), method=False)
    for name in sorted({*DType.NAMES, *DType.SYNONYMS}):
        yield f"{name}: DType"
    yield "strided: Layout"
    for name in sorted(MemoryFormat.NAMES):
        yield f"{name}: MemoryFormat"
    for name in ("e", "inf", "nan", "pi"):
        yield f"{name}: builtins.float"


def operators() -> Iterator[str]:
    """The lines of the class of the runtime's own operators."""
    found: dict[str, set[str]] = {}
    for entry in default_dispatcher().state.namespaces[NAMESPACE].values():
        if entry.definitions and entry.schema is not None:
            found.setdefault(entry.name.base, set()).add(given(entry.schema))
    for name, results in sorted(found.items()):
        result = results.pop() if len(results) == 1 else "Any"
        yield f"{name}: Packet[{result}]"


_HEAD = '''"""The methods, functions, dtypes and operators of the runtime.

Made of the declarations by `python -m tests.tools.stub --write`.
"""

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, Self, TypeVar, overload

from everyorder.runtime.autograd.node import RemovableHandle
from everyorder.runtime.dispatch.handle import OperatorPacket
from everyorder.runtime.operators.bindings.python_api import Ordered
from everyorder.runtime.tensors.generator import Generator
from everyorder.runtime.schema.enums import Device, DType, Layout, MemoryFormat
from everyorder.runtime.tensors.storage import Storage
from everyorder.runtime.tensors.tensor import Tensor

Number = builtins.bool | builtins.int | builtins.float | builtins.complex
Kind = TypeVar("Kind", bound=Tensor)
'''

_PACKET = """R = TypeVar("R")

class Packet(OperatorPacket, Generic[R]):
    def __call__(self, *args: Any, **kwargs: Any) -> R: ...
"""


def text() -> str:
    """What the file has to be."""
    of_methods, of_operators = (
        "\n".join(lines).replace("\n", "\n    ") for lines in (methods(), operators())
    )
    lines = "\n".join(names())
    return (
        f"{_HEAD}\nclass Declared:\n    {of_methods}\n\n{_PACKET}\n"
        f"class Core:\n    {of_operators}\n\n{lines}\n"
    )


def main(arguments: list[str]) -> int:
    """Write the file, or say that it is not as it should be."""
    made = text()
    if "--write" in arguments:
        FILE.write_text(made, encoding="utf-8")
    elif not FILE.exists() or FILE.read_text(encoding="utf-8") != made:
        print(f"{FILE.name} is not what the declarations say: write it anew")
        return 1
    return 0


if __name__ == "__main__":
    # Everything that installs methods.
    load("everyorder.runtime.bootstrap")
    sys.exit(main(sys.argv[1:]))
