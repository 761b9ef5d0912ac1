"""Loading: read a module, a function or a value from an archive into a new program.

Members of an archive become types, functions and values.

Rules:
- loading runs no code of the archive: texts are parsed and checked, classes are created
  with compiled methods, and no name is looked up outside of the archive except
  operators, and enums that are identical in this process;
- the loaded program is separate: its names do not conflict with those of other
  programs;
- everything is checked before `load` returns: graphs by the laws of graphs, values by
  the types of the attributes that hold them;
- a cast may still be wrong: the types of objects are checked when a graph accesses them
  (the namespace `is_foreign`), so that no attribute access reaches arbitrary Python
  objects;
- every fault raises an `ArchiveError` that names the member;
- objects of a class are instances of a Python class that is created by the loader, and
  keep it alive;
- bytes of tensors are not read (except bools): a file at a path is mapped.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any

from everyorder.runtime.errors.schema import UnknownKind
from everyorder.runtime.errors.script import ArchiveError, BrokenGraph
from everyorder.runtime.errors.source import Source
from everyorder.runtime.errors.tensor import DeviceUnavailable
from everyorder.runtime.nn import Module
from everyorder.runtime.schema.declared import (
    DeclaredType,
    EnumType,
    ModuleType,
    Namespace,
    ScriptClassType,
)
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.schema.parser import parse_name, parse_type
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import NO_DEFAULT, Argument, OperatorName
from everyorder.runtime.schema.subtyping import is_subtype
from everyorder.runtime.schema.types import (
    TupleType,
    Type,
)
from everyorder.runtime.script.archive import container
from everyorder.runtime.script.archive.container import ArchiveReader, Place, reading
from everyorder.runtime.script.archive.data import (
    Decoder,
    Fits,
    MalformedArchive,
    identifier,
    qualname,
)
from everyorder.runtime.script.archive.saving import KINDS, SPECIAL, nodes_of
from everyorder.runtime.script.archive.spelling import manager
from everyorder.runtime.script.emission.python_class import getter, setter
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir import Graph, check, parse_graph, row_of
from everyorder.runtime.script.ir import Place as Written
from everyorder.runtime.script.ir.program import (
    Function,
    Program,
    declare_objects,
    declared_type,
)
from everyorder.runtime.script.modules import ScriptModule
from everyorder.runtime.script.modules.script_module import RESERVED
from everyorder.runtime.script.types.python_classes import named_tuple_class
from everyorder.runtime.tensors.dtype_info import itemsize, numpy_dtype, parse_dtype
from everyorder.runtime.tensors.storage import Storage, memory_of, resolve_device

# The attributes of every module, which an archive cannot define.
_OWN = RESERVED | (frozenset(vars(Module())) - {"training"})


def load(
    file: Place,
    map_location: str | Device | None = None,
    _extra_files: dict[str, Any] | None = None,
) -> Any:
    """Return the module, function or value of an archive.

    `file` is a path or an open file in binary mode; tensors are on `map_location`, or
    on the devices that they were saved on.  The entries of `_extra_files` are set to
    the bytes that were saved under their names.

    Raises:
        ArchiveError: the file is not an archive, or is damaged, newer, or too large.
        DeviceUnavailable: a device of the tensors is not available.
    """
    reader = reading(file)
    root = _Loader(reader, map_location).root()
    for name in _extra_files or ():
        if f"extra/{name}" in reader and _extra_files is not None:
            _extra_files[name] = reader.unpacked(f"extra/{name}")
    return root


class _Loader:
    """One run over one archive."""

    def __init__(
        self, reader: ArchiveReader, map_location: str | Device | None
    ) -> None:
        self.reader = reader
        self.location = None if map_location is None else resolve_device(map_location)
        self.program = Program(Namespace(is_foreign=True))
        self.functions: dict[str, Function] = {}
        # The Python classes in the order of their declaration.
        self.pythons: dict[type, None] = {}
        self.storages: dict[int, Storage] = {}
        self.storage_texts: list[Any] = []
        self.owners: dict[str, tuple[DeclaredType, str]] = {}

    def root(self) -> Any:
        self.check_version()
        with self.rules("data.json"):
            data = self.json("data.json")
            self.storage_texts = _field(data, "storages", list)
            objects = _field(data, "objects", dict)
            if len(self.storage_texts) > container.MOST_STORAGES:
                raise MalformedArchive(
                    f"there are more than {container.MOST_STORAGES} storages"
                )
            self.values = Decoder(
                _field(data, "shared", list),
                self.storage,
                self.find_type,
                self.find_function,
                self.named_tuple,
            )
        with self.rules("types.json"):
            types = self.json("types.json")
            self.declare(_field(types, "types", list), _field(types, "functions", list))
        graphs = self.graphs(objects)
        with self.rules("debug.json"):
            self.set_places(self.json("debug.json"), graphs)
        with self.rules("data.json"):
            root = self.values.decode(data.get("root"))
            self.check_modules()
            self.check_values()
        # The code is not loaded, but its damage is reported.
        for name in self.reader.names("code"):
            self.reader.unpacked(f"code/{name}")
        self.keep_alive()
        return root

    # Reading members

    def check_version(self) -> None:
        reader = self.reader
        if "version" not in reader:
            reason = "the member `version` is missing"
            raise ArchiveError(code="NotAnArchive", archive=reader.label, reason=reason)
        text = reader.text("version").strip()
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            reader.damaged("version", "this is not a number")
        if int(text) > container.VERSION:
            raise ArchiveError(
                code="NewerArchive",
                archive=reader.label,
                found=int(text),
                known=container.VERSION,
            )
        if int(text) != container.VERSION:
            reader.damaged("version", f"there was no format {int(text)}")

    @contextmanager
    def rules(self, member: str) -> Iterator[None]:
        """Report errors within the context as errors of a member of the archive."""
        try:
            yield
        except (ArchiveError, DeviceUnavailable, MemoryError):
            raise
        except RecursionError:
            self.reader.damaged(member, "its parts are nested too deeply")
        except UnknownKind as error:
            # The operator may be registered by a library that is not loaded.
            here = self.reader.label
            name = error.kind
            raise ArchiveError(
                code="OperatorNotHere", archive=here, member=member, operator=name
            ) from None
        except BrokenGraph as error:
            law, line, fault = error.faults[0]
            self.reader.damaged(member, f"{law}, in line {line}: {fault}"[:400])
        except Exception as error:
            # The parsers raise the errors of their areas; the first line is the
            # message.
            words = str(error).partition("\n")[0].rstrip(".:") or type(error).__name__
            printable = words if words.isprintable() else ascii(words)
            self.reader.damaged(member, printable[:400])

    def json(self, member: str) -> dict[str, Any]:
        text = self.reader.text(member)

        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            table = dict(pairs)
            if len(table) != len(pairs):
                raise MalformedArchive("duplicate name")
            return table

        def refuse(word: str) -> Any:
            raise MalformedArchive(f"{word} is not a number here")

        content = json.loads(text, object_pairs_hook=once, parse_constant=refuse)
        if content.__class__ is not dict:
            raise MalformedArchive("this is not a table")
        result: dict[str, Any] = content
        return result

    # Types and functions

    def find_type(self, name: str) -> DeclaredType:
        declared = self.program.namespace.find(name)
        if declared is None:
            raise MalformedArchive(f"the archive has no type {name}")
        return declared

    def find_function(self, name: str) -> Function:
        function = self.functions.get(name)
        if function is None:
            raise MalformedArchive(f"the archive has no function {name}")
        return function

    def read_type(self, text: Any) -> Type:
        if text.__class__ is not str:
            raise MalformedArchive("a type is a text")
        namespace = self.program.namespace
        return parse_type(text, type_variables=False, namespace=namespace)

    def named_tuple(self, of: TupleType) -> Any:
        python = named_tuple_class(of)
        if python not in self.pythons:
            self.pythons[python] = None
            # A new class needs its module name.
            if python.__module__ == named_tuple_class.__module__:
                path = of.qualname.removeprefix("__torch__.").rpartition(".")[0]
                python.__module__ = path or "__main__"
        return python

    def declare(self, types: list[Any], functions: list[Any]) -> None:
        """Declare all types, then all their parts."""
        if (
            len(types) > container.MOST_TYPES
            or len(functions) > container.MOST_FUNCTIONS
        ):
            raise MalformedArchive(
                "there are more types, or functions, than is allowed"
            )
        declared_types: list[DeclaredType] = []
        # Enums of this process: their members are also values of other programs.
        existing: set[type] = set()
        for each in types:
            name, word = qualname(each["name"]), each["kind"]
            if word not in KINDS:
                raise MalformedArchive(f"there is no kind of types {word!r}")
            python: type | None = None
            if word == "class":
                python = self.python_class(name)
            elif word == "enum":
                python, is_new = self.python_enum(name, each["constants"])
                if not is_new:
                    existing.add(python)
            declared = self.program.namespace.declare(
                KINDS[word], name, python, is_numbered=True
            )
            if declared.declaration.qualname != name:
                raise MalformedArchive(f"duplicate type {name}")
            if python is not None:
                self.pythons[python] = None
                self.program.classes.put(python, declared)
                if python not in existing:
                    declare_objects(python, declared)
            declared_types.append(declared)
        for declared, each in zip(declared_types, types, strict=True):
            self.fill(declared, each)
        for each in functions:
            name = qualname(each["name"])
            if name in self.functions:
                raise MalformedArchive(f"duplicate function {name}")
            function = Function(name, self.schema(each["schema"]), _no_graph)
            self.functions[name] = function
            if "owner" in each:
                self.add_method(self.find_type(each["owner"]), each["method"], function)
            else:
                self.program.add(function)
        for declared in declared_types:
            if isinstance(declared, ScriptClassType):
                _give_properties(declared)

    def python_class(self, name: str) -> type:
        path, _, last = name.removeprefix("__torch__.").rpartition(".")
        return type(last, (), {"__module__": path or "__main__"})

    def python_enum(self, name: str, members: Any) -> tuple[type, bool]:
        """Return the enum of a name, and True if it was created."""
        path, _, last = name.removeprefix("__torch__.").rpartition(".")
        pairs = [(identifier(key), self.values.decode(value)) for key, value in members]
        if not pairs or any(not isinstance(v, int | float | str) for _, v in pairs):
            raise MalformedArchive(
                f"the members of {name} are neither numbers nor strings"
            )
        if any(key.startswith("_") or key == "mro" for key, _ in pairs):
            raise MalformedArchive(f"a member of {name} cannot be called so")
        # An identical enum that is loaded already is used; nothing is imported for it.
        there = getattr(sys.modules.get(path), "__dict__", {}).get(last)
        if isinstance(there, type) and issubclass(there, Enum):
            own = [(key, each.value) for key, each in there.__members__.items()]
            if repr(own) == repr(pairs):
                return there, False
        created: Any = Enum(last, pairs, module=path or "__main__")  # type: ignore[misc]  # its members are not literals
        result: type = created
        return result, True

    def fill(self, declared: DeclaredType, text: Any) -> None:
        declaration = declared.declaration
        is_module = isinstance(declared, ModuleType)
        for name, each in text["attributes"]:
            if not is_module:
                identifier(name)
            elif name in _OWN or name.startswith("_script") or _is_path(name):
                raise MalformedArchive(f"{name!r} is not a name of an attribute")
            declaration.add_attribute(name, self.read_type(each))
        for name, each in text["methods"]:
            if name not in SPECIAL and not name.startswith("__") and not is_module:
                identifier(name)
            declaration.add_method(name, self.schema(each))
        for name, each in text["constants"]:
            declaration.add_constant(name, self.values.decode(each))
        if isinstance(declared, EnumType):
            declaration.seal()

    def add_method(self, owner: DeclaredType, name: str, function: Function) -> None:
        declaration = owner.declaration
        if name in declaration.functions:
            raise MalformedArchive(f"{owner} has the method {name} twice")
        declared_schema = declaration.methods.get(name)
        if declared_schema is not None and str(declared_schema) != str(function.schema):
            raise MalformedArchive(f"{owner}.{name} has two schemas")
        declaration.functions[name] = function
        self.owners[function.qualname] = owner, name
        python: Any = declaration.python
        if isinstance(owner, ScriptClassType):
            is_special = name.startswith("__") and name.endswith("__")
            if is_special and name not in SPECIAL:
                raise MalformedArchive(f"a class cannot have the method {name}")
            setattr(python, name, _method(function, name))

    def schema(self, text: Any) -> Schema:
        arguments = []
        for each in text["arguments"]:
            default: Any = NO_DEFAULT
            if "default" in each:
                default = self.values.decode(each["default"])
            name, type_ = identifier(each["name"]), self.read_type(each["type"])
            keyword = each.get("keyword") is True
            arguments.append(Argument(name, type_, None, default, keyword))
        returns = tuple(
            Argument(name and identifier(name), self.read_type(type_))
            for name, type_ in text["returns"]
        )
        return Schema(_name(text["name"]), tuple(arguments), returns)

    # Graphs

    def graphs(self, objects: Mapping[str, Any]) -> dict[str, Graph]:
        """Return the graph of each function, checked."""
        graphs: dict[str, Graph] = {}
        for name, function in self.functions.items():
            member = f"graphs/{name}.txt"
            with self.rules(member):
                table = [self.values.decode(e) for e in objects.get(name, [])]
                graph = parse_graph(
                    self.reader.text(member),
                    namespace=self.program.namespace,
                    objects=table,
                    functions=self.functions,
                )
                self.check_kinds(member, graph)
                graphs[name] = graph
                function._graph = graph
        for name, graph in graphs.items():
            with self.rules(f"graphs/{name}.txt"):
                check(graph)
                _check_signature(graph, self.functions[name].schema)
        return graphs

    def check_kinds(self, member: str, graph: Graph) -> None:
        for node in nodes_of(graph):
            called = node.attributes.get("object")
            if node.kind == "prim::PythonOp" and manager(called) is None:
                raise MalformedArchive("a graph calls Python")
            if not node.kind.startswith("prim::") and row_of(node.kind) is None:
                raise ArchiveError(
                    code="OperatorNotHere",
                    archive=self.reader.label,
                    member=member,
                    operator=node.kind,
                )
            for value in node.outputs:
                self.keep_named(value.type)

    def keep_named(self, type_: Type) -> None:
        """Keep the class of a named tuple alive as long as the archive's functions."""
        if isinstance(type_, TupleType) and type_.qualname:
            self.named_tuple(type_)

    def set_places(self, text: Mapping[str, Any], graphs: dict[str, Graph]) -> None:
        sources = []
        for each in _field(text, "sources", list):
            parts = each["text"], each["file"], each["line"]
            if tuple(map(type, parts)) != (str, str, int) or not 0 < parts[2] < 2**31:
                raise MalformedArchive("a source is a text, a file and a line")
            sources.append(Source(*parts))
        for name, places in _field(text, "places", dict).items():
            nodes = [*nodes_of(graphs[name])]
            if len(nodes) != len(places):
                raise MalformedArchive(f"{name} has {len(nodes)} nodes")
            for node, place in zip(nodes, places, strict=True):
                if place is None:
                    continue
                number, start, end = place
                source = sources[number]
                if not 0 <= start <= end <= len(source.text) or number < 0:
                    raise MalformedArchive(
                        f"a place of {name} is outside of its source"
                    )
                node.place = Written(source, (start, end))

    # Values

    def storage(self, number: int) -> Storage:
        storage = self.storages.get(number)
        if storage is None:
            storage = self.storages[number] = self.new_storage(number)
        return storage

    def new_storage(self, number: int) -> Storage:
        import numpy as np

        if number >= len(self.storage_texts):
            raise MalformedArchive(f"there is no storage {number}")
        text = self.storage_texts[number]
        dtype, device = parse_dtype(text["dtype"]), Device.parse(text["device"])
        count, size = text["count"], itemsize(dtype)
        if count.__class__ is not int or not 0 <= count < 2**48:
            raise MalformedArchive(f"storage {number} has no size")
        if device.type == "meta":
            return Storage(None, device, dtype, count)
        device = device if self.location is None else self.location
        member = f"storages/{number}"
        start, nbytes = self.reader.raw(member)
        if nbytes != count * size:
            raise MalformedArchive(
                f"storage {number} has {nbytes} bytes for {count} elements"
            )
        if device.type == "meta":
            return Storage(None, device, dtype, count)
        if nbytes:
            raw = np.frombuffer(self.reader.data, np.uint8, nbytes, start)
        else:
            raw = np.empty(0, np.uint8)
        if dtype.name == "bool" and nbytes and int(raw.max()) > 1:
            raise MalformedArchive(
                f"storage {number} has bools that are neither 0 nor 1"
            )
        elements = raw.view(numpy_dtype(dtype))
        memory = memory_of(device.type)
        return Storage(memory.from_numpy(elements, device.index), device, dtype, count)

    def check_values(self) -> None:
        """Refuse values that are not of the types declared by classes and modules."""
        fits = Fits()
        for value in self.values.everything():
            declared = declared_type(value)
            assert declared is not None, (
                "the decoder creates only objects of declared classes"
            )
            for name, type_ in declared.declaration.attributes.items():
                missing = object()
                member = getattr(value, name, missing)
                if member is missing and isinstance(value, ScriptModule):
                    raise MalformedArchive(f"a module {declared} has no {name}")
                if member is missing:
                    continue
                if not fits(member, type_):
                    kind = type(member).__name__
                    raise MalformedArchive(
                        f"{declared}.{name} is a {kind}, not a {type_}"
                    )

    def check_modules(self) -> None:
        """Refuse a module that contains itself."""
        done: set[int] = set()
        for each in self.values.everything():
            todo: list[tuple[Module, bool]] = []
            if isinstance(each, ScriptModule):
                todo.append((each, False))
            above: set[int] = set()
            while todo:
                module, is_left = todo.pop()
                if is_left:
                    above.discard(id(module))
                    done.add(id(module))
                elif id(module) in above:
                    raise MalformedArchive("a module is within itself")
                elif id(module) not in done:
                    above.add(id(module))
                    todo.append((module, True))
                    inner = module._modules.values()
                    todo += [(one, False) for one in inner if one is not None]

    def keep_alive(self) -> None:
        """Keep the Python classes alive as long as functions that create objects."""
        classes = tuple(self.pythons)
        for name, function in self.functions.items():
            owner = self.owners.get(name)
            if owner is None or not isinstance(owner[0], ScriptClassType):
                function.memo["archive"] = classes
        for python in classes:
            if not issubclass(python, Enum | tuple):
                python.__archived__ = classes  # type: ignore[attr-defined]  # no class of a program has this name


def _is_path(name: str) -> bool:
    """Return True for a path, or a name that Python may reserve."""
    return "." in name or name.endswith("__")


def _no_graph() -> Graph:
    raise AssertionError("graphs are read before their first use")


def _method(function: Function, name: str) -> Callable[..., Any]:
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return call(function, (self, *args), kwargs)

    method.__name__ = method.__qualname__ = name
    return method


def _give_properties(declared: ScriptClassType) -> None:
    """Add Python properties for getters, as in the original class."""
    declaration = declared.declaration
    python: Any = declaration.python
    members = {*declaration.attributes, *declaration.functions}
    for name in declaration.functions:
        stem = name.removesuffix(getter(""))
        if stem == name:
            continue
        if identifier(stem) in members:
            # Setting the attributes of an object would run the setter.
            raise MalformedArchive(f"{declared} has {stem} twice")
        write = getattr(python, setter(stem), None)
        setattr(python, stem, property(getattr(python, name), write))


def _name(text: Any) -> OperatorName:
    if text.__class__ is not str or len(text) > container.NAME_LENGTH:
        raise MalformedArchive("a schema has a name")
    return parse_name(text)


def _field(table: Mapping[str, Any], name: str, kind: type) -> Any:
    entry = table.get(name)
    if entry.__class__ is not kind:
        raise MalformedArchive(f"there is no {name}")
    return entry


def _check_signature(graph: Graph, schema: Schema) -> None:
    """Refuse a graph whose parameters or results differ from the schema."""
    takes = [each.type for each in graph.block.parameters]
    gives = [each.type for each in graph.block.results]
    declared = [each.fake_type for each in schema.arguments]
    if takes != declared:
        raise MalformedArchive(f"the graph takes other values than {schema}")
    results = [each.fake_type for each in schema.returns]
    fits = len(gives) == len(results) and all(map(is_subtype, gives, results))
    if not fits and not (not gives and not results):
        raise MalformedArchive(f"the graph gives other values than {schema}")
