"""Saving: from a module, a function or a value to the members of an archive.

These members make an archive:

    version                  the number of the format
    data.json                the root, the values that are shared, the storages; what
                             graphs and, as CONSTANTS, the code only name
    types.json               classes, modules, interfaces, enums; functions
    graphs/NAME.txt          the graph of a function, which is what is loaded
    code/__torch__/a/b.py    the same as Python, for people: what a.b defines
    debug.json               the lines of source that nodes came from
    storages/N               the bytes of a storage
    extra/NAME               what the caller put in

Rules:
- everything that the root refers to is in the archive, in the order in which it was
  met, and nothing else: the same root gives the same bytes;
- graphs are the ones that were compiled and cleaned up, not what was optimised;
- a name means one type and one function in an archive.
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
from everyorder.runtime.script.archive.data import Encoder
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


def save(
    saved: Any, file: Place, _extra_files: Mapping[str, str | bytes] | None = None
) -> None:
    """Write an archive of a compiled module, a function, or a value of a program.

    `file` is a path, where the archive replaces what is there when it is whole, or an
    open file in binary mode.

    Raises:
        ArchiveError: something that belongs to it has no form in an archive.
    """
    contents = _Contents()
    # What wraps a function is not of a program.
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
    """All that belongs to one archive."""

    def __init__(self) -> None:
        self.types: dict[str, DeclaredType] = {}
        self.functions: dict[str, Function] = {}
        # Qualified name of a method -> its type, and its name there.
        self.owners: dict[str, tuple[str, str]] = {}
        self.values = Encoder(self.add_type, self.add_function)
        self.sources: dict[tuple[str, int, str], int] = {}
        self._seen: set[int] = set()

    def members(self, root: Any) -> Iterator[tuple[str, str]]:
        """The texts, by the names of their members."""
        what = "the function" if isinstance(root, Function) else "the saved object"
        data = {"root": self.values.encode(root, what)}
        types: list[Any] = []
        functions: list[Any] = []
        graphs: dict[str, str] = {}
        objects: dict[str, Any] = {}
        places: dict[str, Any] = {}
        # Each may bring more of both.
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

    # What is met

    def add_type(self, declared: DeclaredType) -> str:
        """Take a type in; gives its name."""
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
        """Take a function in; gives its name."""
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
        """The text of a type, all of whose parts are taken in."""
        todo: list[Type] = [type_]
        while todo:
            each = todo.pop()
            if id(each) in self._seen:
                continue
            self._seen.add(id(each))
            if isinstance(each, DeclaredType):
                self.add_type(each)
            # The last of a pair first, as ever: the same root gives the same bytes.
            parts = parts_of(each)
            todo += parts if isinstance(each, DictType) else reversed(parts)
        return str(type_)

    # How it is described

    def describe_type(self, name: str, declared: DeclaredType) -> Any:
        declaration = declared.declaration
        methods: list[Any] = []
        for method, function in declaration.functions.items():
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
        """Of each node where it is written: a source, and a span of it, or null."""
        nodes = [*nodes_of(graph)]
        lines: dict[int, tuple[int, int]] = {}
        kept: dict[int, Source] = {}
        for node in nodes:
            if node.place is None:
                continue
            source, (start, end) = node.place
            first, last = (
                source.place(start)[0],
                source.place(max(start, end - 1))[0],
            )
            before = lines.get(id(source), (first, last))
            kept[id(source)] = source
            lines[id(source)] = min(before[0], first), max(before[1], last)
        parts: dict[int, tuple[int, int]] = {}
        for key, (first, last) in lines.items():
            source = kept[key]
            rows = source.text.split("\n")
            begin = max(first - source.line - CONTEXT, 0)
            stop = min(last - source.line + CONTEXT + 1, len(rows))
            text = "\n".join(rows[begin:stop])
            offset = sum(len(each) + 1 for each in rows[:begin])
            part = source.file, source.line + begin, text
            parts[key] = self.sources.setdefault(part, len(self.sources)), offset
        found: list[Any] = []
        for node in nodes:
            if node.place is None:
                found.append(None)
                continue
            number, offset = parts[id(node.place.source)]
            start, end = node.place.span
            found.append([number, start - offset, end - offset])
        return found

    # For people

    def code(self, constants: Constants) -> Iterator[tuple[str, str]]:
        """Classes and functions as Python, one text for each module of Python."""
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
    """All nodes of a graph, and of the graphs that they name, each before those."""
    todo = [graph]
    while todo:
        inner: list[Graph] = []
        for node in todo.pop().nodes():
            yield node
            inner += [e for e in node.attributes.values() if isinstance(e, Graph)]
        todo += reversed(inner)


def _json(table: Mapping[str, Any]) -> str:
    """A table as JSON: a line for each entry, and for each of what an entry lists."""
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
