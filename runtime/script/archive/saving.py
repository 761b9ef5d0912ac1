"""Saving: write a module, a function or a value to the members of an archive.

An archive has these members:

    version                  the number of the format
    data.json                the root, the shared values, the storages; objects that
                             graphs and, as CONSTANTS, the code refer to
    types.json               classes, modules, interfaces, enums; functions
    graphs/NAME.txt          the graph of a function, which is loaded
    code/__torch__/a/b.py    the definitions of a.b as Python, for people, not loaded
    debug.json               the source lines of nodes
    storages/N               the bytes of a storage
    extra/NAME               extra files of the caller

Rules:
- the archive holds exactly the objects reachable from the root, in the order of
  traversal: the same root results in the same bytes;
- graphs are the compiled and cleaned-up ones, not the optimized ones;
- in an archive a name refers to one type or one function.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from everyorder.runtime.errors.script import ArchiveError
from everyorder.runtime.errors.source import CONTEXT, Source
from everyorder.runtime.schema.declared import (
    DeclaredType,
    EnumType,
    InterfaceType,
    ModuleType,
    ScriptClassType,
)
from everyorder.runtime.schema.signature import Signature
from everyorder.runtime.schema.types import DictType, Type
from everyorder.runtime.script.archive import container
from everyorder.runtime.script.archive.code import code_of, type_code
from everyorder.runtime.script.archive.container import ArchiveWriter, Place, writing
from everyorder.runtime.script.archive.encoder import Encoder
from everyorder.runtime.script.archive.spelling import Constants, manager
from everyorder.runtime.script.ir import Graph, Node, printed
from everyorder.runtime.script.ir.program import Function
from everyorder.runtime.script.ir.type_rules import parts_of

KINDS: Mapping[str, type[DeclaredType]] = {
    "class": ScriptClassType,
    "module": ModuleType,
    "interface": InterfaceType,
    "enum": EnumType,
}
_WORDS = {kind: word for word, kind in KINDS.items()}

# Methods of classes that Python calls implicitly, and that classes of programs support.
_SPECIAL = (
    "init enter exit call len bool str repr hash contains getitem setitem delitem",
    "eq ne lt le gt ge add sub mul matmul truediv floordiv mod pow and or xor",
    "lshift rshift neg pos invert abs int float complex round iadd isub imul imatmul",
    "itruediv ifloordiv imod ipow iand ior ixor ilshift irshift radd rsub rmul",
    "rmatmul rtruediv rfloordiv rmod rpow rand ror rxor getstate setstate",
)
SPECIAL = frozenset(f"__{name}__" for row in _SPECIAL for name in row.split(" "))


def save(
    saved: Any, file: Place, _extra_files: Mapping[str, str | bytes] | None = None
) -> None:
    """Write an archive of a compiled module, a function, or a value of a program.

    `file` is a path, where the complete archive replaces an existing file, or an open
    file in binary mode.

    Raises:
        ArchiveError: a reachable object cannot be stored in an archive.
    """
    contents = _Contents()
    # The wrapper of a function is not part of the program.
    root = getattr(saved, "function", saved)
    members = contents.members(root if isinstance(root, Function) else saved)
    with writing(file) as writer:
        for name, text in members:
            writer.text(name, text)
        for number, storage in enumerate(contents.values.storages):
            _write_storage(writer, f"storages/{number}", storage)
        for name, content in (_extra_files or {}).items():
            writer.text(f"extra/{name}", content)


def _write_storage(writer: ArchiveWriter, name: str, storage: Any) -> None:
    import numpy as np

    elements = storage.numpy()
    if elements is not None:
        raw: Any = np.ascontiguousarray(elements).view(np.uint8)
        writer.raw(name, memoryview(raw))


class _Contents:
    """The content of one archive."""

    def __init__(self) -> None:
        self.types: dict[str, DeclaredType] = {}
        self.functions: dict[str, Function] = {}
        # Qualified name of a method -> its type, and its name there.
        self.owners: dict[str, tuple[str, str]] = {}
        self.values = Encoder(self.add_type, self.add_function)
        self.sources: dict[tuple[str, int, str], int] = {}
        self._visited: set[int] = set()

    def members(self, root: Any) -> Iterator[tuple[str, str]]:
        """Yield the texts with the names of their members."""
        place = "the function" if isinstance(root, Function) else "the saved object"
        data = {"root": self.values.encode(root, place)}
        types: list[Any] = []
        functions: list[Any] = []
        graphs: dict[str, str] = {}
        objects: dict[str, Any] = {}
        places: dict[str, Any] = {}
        # Each type or function may add more of both.
        while len(types) < len(self.types) or len(functions) < len(self.functions):
            if len(types) < len(self.types):
                name = [*self.types][len(types)]
                types.append(self.describe_type(name, self.types[name]))
                continue
            name = [*self.functions][len(functions)]
            function = self.functions[name]
            functions.append(self.describe_function(name, function))
            drawn = printed(function.graph, places=False)
            graphs[name] = drawn.text
            objects[name] = self.graph_objects(name, function.graph, drawn.objects)
            for each in drawn.functions.values():
                self.add_function(each)
            places[name] = self.places(function.graph)
        constants = Constants()
        code = [*self.code(constants)]
        order = ("root", "constants", "objects", "shared", "storages")
        data["constants"] = [
            self.values.encode(each, "the constants of the code")
            for each in constants.values
        ]
        data["objects"] = {name: each for name, each in objects.items() if each}
        data["shared"] = self.values.shared
        data["storages"] = [
            {
                "dtype": each.dtype.name,
                "device": str(each.device),
                "count": each.count,
            }
            for each in self.values.storages
        ]
        sources = [
            {"file": file, "line": line, "text": text}
            for file, line, text in self.sources
        ]
        yield "version", f"{container.VERSION}\n"
        yield "data.json", _json({word: data[word] for word in order})
        yield "types.json", _json({"types": types, "functions": functions})
        yield "debug.json", _json({"sources": sources, "places": places})
        for name, text in graphs.items():
            yield f"graphs/{name}.txt", text
        yield from code

    # Collecting types and functions

    def add_type(self, declared: DeclaredType) -> str:
        """Add a type to the archive; return its name."""
        name = declared.declaration.qualname
        if self.types.setdefault(name, declared) is not declared:
            raise ArchiveError(
                code="NotSaveable",
                place="the types",
                found=f"A type {name}",
                reason="there is another of this name, from another program",
            )
        return name

    def add_function(self, function: Function) -> str:
        """Add a function to the archive; return its name."""
        name = function.qualname
        if self.functions.setdefault(name, function) is not function:
            raise ArchiveError(
                code="NotSaveable",
                place="the functions",
                found=f"A function {name}",
                reason="there is another of this name, from another program",
            )
        return name

    def type_text(self, type_: Type) -> str:
        """Return the text of a type; add all declared types in it."""
        todo: list[Type] = [type_]
        while todo:
            each = todo.pop()
            if id(each) in self._visited:
                continue
            self._visited.add(id(each))
            if isinstance(each, DeclaredType):
                self.add_type(each)
            self.values.learn_enum(each)
            # The value type of a dictionary is added before the key type. The order is
            # fixed: the same root must result in the same bytes.
            parts = parts_of(each)
            todo += parts if isinstance(each, DictType) else reversed(parts)
        return str(type_)

    # Descriptions

    def describe_type(self, name: str, declared: DeclaredType) -> Any:
        declaration = declared.declaration
        methods: list[Any] = []
        for method, function in declaration.functions.items():
            is_special = method.startswith("__") and method.endswith("__")
            if (
                isinstance(declared, ScriptClassType)
                and is_special
                and method not in SPECIAL
            ):
                raise ArchiveError(
                    code="NotSaveable",
                    place="the types",
                    found=f"The class {name}",
                    reason=f"Python calls its method `{method}` by itself",
                    hint="Give the method another name.",
                )
            if isinstance(function, Function):
                self.owners[function.qualname] = name, method
                self.add_function(function)
        for method, schema in declaration.methods.items():
            methods.append([method, self.schema(schema, f"{name}.{method}")])
        return {
            "kind": _WORDS[type(declared)],
            "name": name,
            "attributes": [
                [attribute, self.type_text(each)]
                for attribute, each in declaration.attributes.items()
            ],
            "constants": [
                [constant, self.values.encode(each, f"{name}.{constant}")]
                for constant, each in declaration.constants.items()
            ],
            "methods": methods,
        }

    def describe_function(self, name: str, function: Function) -> Any:
        described = {"name": name, "schema": self.schema(function.schema, name)}
        if name in self.owners:
            described["owner"], described["method"] = self.owners[name]
        return described

    def schema(self, schema: Signature, place: str) -> Any:
        arguments = []
        for each in schema.arguments:
            argument: dict[str, Any] = {
                "name": each.name,
                "type": self.type_text(each.type),
            }
            if each.has_default:
                at = f"the default of `{each.name}` of {place}"
                argument["default"] = self.values.encode(each.default, at)
            if each.kwarg_only:
                argument["keyword"] = True
            arguments.append(argument)
        return {
            "name": str(schema.name),
            "arguments": arguments,
            "returns": [
                [each.name, self.type_text(each.type)] for each in schema.returns
            ],
        }

    def graph_objects(self, name: str, graph: Graph, objects: Any) -> list[Any]:
        for node in nodes_of(graph):
            called = node.attributes.get("object")
            if node.kind == "prim::PythonOp" and manager(called) is None:
                raise ArchiveError(
                    code="NotSaveable",
                    place=name,
                    found=f"A call of Python's `{node.attributes['name']}`",
                    reason="the function is in this process alone",
                    hint="Compile it, or take what calls it out of the module.",
                )
            for value in node.outputs:
                self.type_text(value.type)
            for types in node.attributes.values():
                if isinstance(types, tuple):
                    for each in types:
                        if isinstance(each, Type):
                            self.type_text(each)
            for block in node.blocks:
                for value in block.parameters:
                    self.type_text(value.type)
        for value in graph.block.parameters:
            self.type_text(value.type)
        return [self.values.encode(each, f"a constant of {name}") for each in objects]

    def places(self, graph: Graph) -> list[Any]:
        """Return the place of each node: a source's number with a span, or null."""
        nodes = [*nodes_of(graph)]
        lines: dict[int, tuple[int, int]] = {}
        sources: dict[int, Source] = {}
        for node in nodes:
            if node.place is None:
                continue
            source, (start, end) = node.place
            first, last = (
                source.place(start)[0],
                source.place(max(start, end - 1))[0],
            )
            before = lines.get(id(source), (first, last))
            sources[id(source)] = source
            lines[id(source)] = min(before[0], first), max(before[1], last)
        parts: dict[int, tuple[int, int]] = {}
        for key, (first, last) in lines.items():
            source = sources[key]
            rows = source.text.split("\n")
            begin = max(first - source.line - CONTEXT, 0)
            stop = min(last - source.line + CONTEXT + 1, len(rows))
            text = "\n".join(rows[begin:stop])
            offset = sum(len(each) + 1 for each in rows[:begin])
            part = source.file, source.line + begin, text
            parts[key] = self.sources.setdefault(part, len(self.sources)), offset
        places: list[Any] = []
        for node in nodes:
            if node.place is None:
                places.append(None)
                continue
            number, offset = parts[id(node.place.source)]
            start, end = node.place.span
            places.append([number, start - offset, end - offset])
        return places

    # For people

    def code(self, constants: Constants) -> Iterator[tuple[str, str]]:
        """Yield classes and functions as Python, one text for each Python module."""
        texts: dict[str, list[str]] = {}
        for name, declared in self.types.items():
            folder = name.rpartition(".")[0]
            texts.setdefault(folder, []).append(type_code(declared, constants))
        for name, function in self.functions.items():
            if name not in self.owners:
                folder = name.rpartition(".")[0]
                texts.setdefault(folder, []).append(code_of(function, constants))
        for folder, each in texts.items():
            path = folder.replace(".", "/")
            yield f"code/{path}.py", "\n\n".join([_HEADING, *each])


_HEADING = "# For people: what is loaded are the texts in graphs/.\n"


def nodes_of(graph: Graph) -> Iterator[Node]:
    """Yield all nodes of a graph and of the graphs that it names, outer ones first."""
    todo = [graph]
    while todo:
        inner: list[Graph] = []
        for node in todo.pop().nodes():
            yield node
            inner += [e for e in node.attributes.values() if isinstance(e, Graph)]
        todo += reversed(inner)


def _json(table: Mapping[str, Any]) -> str:
    """Return a table as JSON: a line for each entry, and each item of an entry."""
    rows: list[str] = []
    for name, value in table.items():
        key = f"{_line(name)}: "
        if isinstance(value, list) and value:
            parts = [f"  {_line(each)}" for each in value]
            lines = ",\n".join(parts)
            rows.append(f" {key}[\n{lines}\n ]")
        elif isinstance(value, dict) and value:
            parts = [f"  {_line(each)}: {_line(part)}" for each, part in value.items()]
            lines = ",\n".join(parts)
            rows.append(f" {key}{{\n{lines}\n }}")
        else:
            rows.append(f" {key}{_line(value)}")
    whole = ",\n".join(rows)
    return f"{{\n{whole}\n}}\n"


def _line(value: Any) -> str:
    return json.dumps(value, allow_nan=False)
