"""Compile Python functions and classes, and texts, to functions and types of a program.

    compile_function    a Python function, with all that it calls
    compile_text        the functions of a text
    compile_class       a Python class -> its type, with its methods compiled
    ClassSugar          a class in a program: it can be called, and has constants

Rules of classes:
- a class is declared first, so that it can refer to itself; then its attributes are
  collected, from the body and by compiling `__init__`; methods are compiled when they
  are first used, all others at the end;
- in `__init__` the first assignment to an attribute determines its type;
- if a part of a class cannot be compiled, the class is not declared;
- the methods that Python generates for a dataclass are generated as texts, which are
  compiled like others; comparisons are compiled only if a program compares
  (`runtime.script.emission.python_class`).
"""

import ast
import enum
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from everyorder.runtime.errors.schema import AnnotationError
from everyorder.runtime.errors.script import IllTyped, NotScriptable
from everyorder.runtime.errors.source import Source
from everyorder.runtime.schema.annotation import annotated_type
from everyorder.runtime.schema.declared import ScriptClassType, qualified_name
from everyorder.runtime.schema.types import AnyType, NoneType_, Type
from everyorder.runtime.script.emission.builtins import CLASSES, install_builtins
from everyorder.runtime.script.emission.call_matching import (
    fail_recursive,
)
from everyorder.runtime.script.emission.compiler import (
    CLASS_TYPE,
    NO_TYPES,
    CallChain,
    Compiler,
    FunctionBody,
    with_call_chain,
)
from everyorder.runtime.script.emission.emitter import (
    Arguments,
    Emitter,
    PythonObject,
    Sugared,
)
from everyorder.runtime.script.emission.function_values import (
    IGNORED,
    FunctionOfProgram,
    PythonFunction,
)
from everyorder.runtime.script.emission.objects import (
    IGNORED_METHODS,
    PENDING,
    EnumClass,
    EnumValue,
    InterfaceSugar,
    NamedTupleClass,
    ObjectValue,
    call_object_method,
    interface_type,
    member,
    method_schema,
)
from everyorder.runtime.script.emission.python_class import (
    ClassMembers,
    Role,
    class_members,
    dataclass_methods,
    with_defaults,
)
from everyorder.runtime.script.emission.runtime_functions import install_runtime
from everyorder.runtime.script.emission.sugar import (
    register_sugar,
    sugar_of_value,
    type_of_class,
)
from everyorder.runtime.script.frontend import (
    Annotations,
    SourceDefinition,
    check,
    place_of,
    read_function,
    read_signature,
    read_text,
    scope_of_class,
)
from everyorder.runtime.script.ir.program import (
    SHARED_PROGRAM,
    Function,
    Program,
    declare_objects,
    is_interface,
    mark_of,
)
from everyorder.runtime.script.types.annotations import TypeScope

_NO_NAMES: Mapping[str, Any] = {}


def compile_function(
    python: Any,
    program: Program = SHARED_PROGRAM,
    types: Mapping[str, Type] = NO_TYPES,
) -> Function:
    """Compile a Python function, and all functions that it calls.

    `types` are those of parameters without annotation.

    Raises:
        NotScriptable: the source is not available. ProgramError: the function, or a
        function that it calls, cannot be compiled.
    """
    compiler = Compiler(program)
    python = getattr(python, "__func__", python)
    function = compiler.known(python)
    if function is not None:
        return function
    result: Function = compiler.run(lambda: compiler.function(python, types=types))
    return result


def compile_text(
    text: str,
    program: Program = SHARED_PROGRAM,
    names: Mapping[str, Any] = _NO_NAMES,
    *,
    file: str = "",
    path: str = "__torch__",
    is_saved: bool = False,
) -> list[Function]:
    """Compile the functions of a text, which can use each other and `names`.

    `path` is the prefix of their names; `is_saved` is True if the compiler has written
    the text.

    Raises:
        ProgramError: the text is not a program, or cannot be compiled.
    """
    definition = read_text(text, file)
    check(definition.tree, definition.source, is_saved=is_saved)
    compiler = Compiler(program)
    functions: list[Function] = compiler.run(
        lambda: _text_functions(compiler, definition, names, path)
    )
    return functions


class _TextFunction(PythonFunction):
    """A function of a text, `python`; compiled on first use."""

    __slots__ = ("__weakref__", "_function", "path", "scope", "source")

    def __init__(
        self, node: ast.FunctionDef, source: Source, scope: TypeScope, path: str
    ) -> None:
        super().__init__(node)
        self.source = source
        self.scope = scope
        self.path = path
        self._function: Function | None = None

    def describe(self) -> str:
        return f"the function `{self.python.name}`"

    def compiled(self, compiler: Compiler, since: CallChain = ()) -> Function:
        """Return the compiled function."""
        if self._function is None:
            definition: SourceDefinition[Any] = SourceDefinition(
                self.source, self.python
            )
            with with_call_chain(since):
                annotations = Annotations(definition, self.scope)
                signature = read_signature(annotations)
            body = FunctionBody(definition, annotations, self.scope, signature)
            qualname = f"{self.path}.{self.python.name}"
            self._function = compiler.add(self, qualname, body, since)
        return self._function

    def function(self, e: Emitter) -> Function:
        if self._function is None and e.compiler.is_active(self):
            fail_recursive(e, f"`{self.python.name}`")
        return self.compiled(e.compiler, e.since(self.python.name))


def _text_functions(
    compiler: Compiler,
    text: SourceDefinition[ast.Module],
    names: Mapping[str, Any],
    path: str,
) -> list[Function]:
    own: dict[str, Any] = {}
    scope = TypeScope(own, names, classes=compiler.classes)
    functions = []
    for node in text.tree.body:
        if isinstance(node, ast.FunctionDef):
            function = own[node.name] = _TextFunction(node, text.source, scope, path)
            functions.append(function)
        elif isinstance(node, ast.ClassDef):
            raise IllTyped(
                source=text.source,
                span=place_of(node, text.source),
                message="a text contains a class",
                hint="Write functions.",
            )
    return [each.compiled(compiler) for each in functions]


# Classes

# The flag of heap types, classes written in Python; source: Py_TPFLAGS_HEAPTYPE.
_HEAP = 1 << 9
# In the memo of a program: Python class -> type, for compiled classes.
_COMPILED = "compiled classes"


def _has_result(function: Any) -> bool:
    return "return" in getattr(function, "__annotations__", {})


class InitValue(ObjectValue):
    """The object in `__init__`: the first assignment declares an attribute."""

    __slots__ = ()

    def declare_attribute(self, e: Emitter, name: str, type: Type) -> None:  # noqa: A002  # the field's own word
        declared = self.declared
        declared_type = declared.declaration.attributes.get(name)
        if declared_type is None:
            self._slot(e, name)
            declared.declaration.add_attribute(name, type)
        elif declared_type is not type:
            message = f"attribute `{name}` of {declared} is of type {declared_type}"
            e.fail(f"{message}, and is annotated as {type}")

    def set_attribute(self, e: Emitter, name: str, value: Sugared) -> None:
        """Set an attribute; declare it if it is new."""
        declaration = self.declared.declaration
        is_other_member = name in declaration.constants or name in declaration.functions
        if name not in declaration.attributes and not is_other_member:
            new_value = value.value(e)
            self.declare_attribute(e, name, new_value.type)
            e.untyped.discard(new_value)
            value = sugar_of_value(new_value)
        super().set_attribute(e, name, value)

    def _slot(self, e: Emitter, name: str) -> None:
        python: Any = self.declared.declaration.python
        if python is None or python.__dictoffset__:
            return
        if not hasattr(python, name):
            hint = "Add it to `__slots__`."
            e.fail(f"{self.declared} has no slot `{name}`", hint)


class _ClassCompiler:
    """A class that is being compiled."""

    def __init__(
        self, compiler: Compiler, members: ClassMembers, since: CallChain
    ) -> None:
        self.compiler = compiler
        self.members = members
        self.since = since
        self.pending = dict(members.functions)
        self._active: set[str] = set()
        self.lazy: set[str] = set()
        self.declared = self._declare()

    def _declare(self) -> ScriptClassType:
        """Declare the type, with the attributes and constants of the class body."""
        compiler, python = self.compiler, self.members.python
        classes = compiler.program.classes
        compiled = compiler.program.memo.setdefault(_COMPILED, WeakKeyDictionary())
        existing = classes.known(python)
        if isinstance(existing, ScriptClassType):
            # A dataclass that is a field of another one is declared already.
            declared = existing
        elif self.members.fields:
            compiler.declaring.add(python)
            new_type = classes(python, TypeScope(classes=compiler.classes))
            compiler.declaring.discard(python)
            assert isinstance(new_type, ScriptClassType), (
                "a dataclass is declared as a script class"
            )
            declared = new_type
        else:
            name = qualified_name(python)
            namespace = compiler.program.namespace
            declared = namespace.declare(ScriptClassType, name, python)
            classes.put(python, declared)
        compiled[python] = declared

        def undo() -> None:
            del compiled[python]
            classes.forget(python)

        compiler.undo_steps.append(undo)
        declare_objects(python, declared)
        declaration = declared.declaration
        declaration.memo[PENDING] = self.compile_method
        declaration.memo[IGNORED_METHODS] = self.ignored_method
        scope = scope_of_class(python, compiler.classes)
        for name, annotation in self.members.attributes.items():
            declaration.add_attribute(name, self._attribute(name, annotation, scope))
        for name, value in self.members.constants.items():
            declaration.add_constant(name, value)
        return declared

    def _attribute(self, name: str, annotation: Any, scope: TypeScope) -> Type:
        """Return the type of a declared attribute; raises at its place."""
        with suppress(AnnotationError):
            type_ = annotated_type(annotation, scope)
            if type_ is not None:
                return type_
        place = self.members.place(name)
        assert isinstance(place, ast.AnnAssign), "the body annotates the attribute"
        return Annotations(self.members.definition, scope).type(place.annotation)

    def compile(self) -> None:
        """Compile `__init__`; schedule the other methods."""
        generated_methods = dataclass_methods(self.members, self.declared, self.pending)
        # Some fields cannot be compared: report that only if a program compares.
        self.lazy = {*generated_methods} - {"__init__"}
        self.pending |= generated_methods
        if "__init__" in self.pending:
            self.compile_method("__init__", None)
        # A method with an annotated result is only declared by this: others may need
        # it.
        written = [n for n, (_, each) in self.pending.items() if _has_result(each)]
        for name in [*written, *self.pending]:
            if name not in self.lazy:
                self.compile_method(name, None)
        self.compiler.final_jobs.append(self._end)

    def _end(self) -> None:
        if self.lazy:
            return
        self.declared.declaration.memo.pop(PENDING, None)
        self.declared.declaration.seal()

    def compile_method(self, name: str, e: Emitter | None) -> None:
        """Compile a method, unless it is compiled."""
        if name in self._active and e is not None:
            # A method with a known result is declared already.
            if name not in self.declared.declaration.methods:
                fail_recursive(e, f"`{name}`", "self")
            return
        if name not in self.pending or name in self._active:
            return
        role, function = self.pending[name]
        if mark_of(function) in IGNORED:
            return
        if role is Role.STATIC:
            del self.pending[name]
            self.declared.declaration.functions[name] = function
            return
        if e is not None:
            # The class may be used by another compiler now.
            self.compiler = e.compiler
        since = self.since if e is None else e.since(self._path(name))
        self._active.add(name)
        try:
            self._method(name, function, since)
        finally:
            self._active.discard(name)
        del self.pending[name]

    def _path(self, name: str) -> str:
        return f"{self.members.python.__name__}.{name}"

    def _method(self, name: str, function: Any, since: CallChain) -> None:
        declaration = self.declared.declaration
        is_init = name == "__init__"
        sugar = InitValue if is_init else None
        method = self.compiler.method(function, self.declared, name, since, sugar=sugar)
        declaration.add_method(name, method.schema)
        declaration.functions[name] = method
        if is_init:
            # Attributes are declared by `__init__`, so its graph is needed now.
            method.graph  # noqa: B018  # the access builds it
            if method.schema.returns[0].type is not NoneType_:
                definition = read_function(function)
                place = place_of(definition.tree, definition.source)
                raise IllTyped(
                    source=definition.source,
                    span=place,
                    message="`__init__` returns something",
                    hint="The object is there already: assign to `self`.",
                    since=since,
                )

    def ignored_method(self, name: str) -> Any:
        """Return the function of a method that is left to Python, or None."""
        _, python = self.members.functions.get(name, (None, None))
        return python if mark_of(python) in IGNORED else None


def class_type(
    compiler: Compiler, python: type, since: CallChain = ()
) -> ScriptClassType:
    """Return the type of a Python class; begin to compile it if it is new.

    Raises:
        NotScriptable: the source is not available. ProgramError: the class, or a part
        of it, is not supported.
    """
    existing = compiler.program.memo.get(_COMPILED, {}).get(python)
    if existing is not None:
        result: ScriptClassType = existing
        return result
    class_compiler = _ClassCompiler(compiler, class_members(python), since)
    class_compiler.compile()
    return class_compiler.declared


def compile_class(python: type, program: Program = SHARED_PROGRAM) -> ScriptClassType:
    """Compile a Python class with all of its methods; return the type of its objects.

    Raises:
        NotScriptable: the source is not available. ProgramError: the class, or a part
        of it, is not supported.
    """
    compiler = Compiler(program)
    result: ScriptClassType = compiler.run(lambda: class_type(compiler, python))
    return result


class ClassSugar(PythonObject):
    """A class in a program."""

    __slots__ = ()

    def describe(self) -> str:
        return f"the class `{self.python.__name__}`"

    def type(self, e: Emitter) -> ScriptClassType:
        """Return the type of its objects; begin to compile it if it is new."""
        since = e.since(self.python.__name__)
        try:
            return class_type(e.compiler, self.python, since)
        except NotScriptable as error:
            if error.code != "NoSource":
                raise
            return e.fail(
                f"{self.describe()} cannot be compiled: {error.reason}", error.hint
            )

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        declared = self.type(e)
        node = e.node("prim::CreateObject", (), (declared,))
        new_object = ObjectValue(node.output)
        if method_schema(e, declared, "__init__") is not None:
            init_arguments = with_defaults(e, self.python, arguments)
            call_object_method(e, new_object, "__init__", init_arguments)
        elif arguments.positional or arguments.named:
            e.fail(f"{self.describe()} has no `__init__`, and takes no arguments")
        return new_object

    def attribute(self, e: Emitter, name: str) -> Sugared:
        declared = self.type(e)
        if method_schema(e, declared, name) is not None:
            return _UnboundMethod(declared, name)
        return member(e, declared, name)


class _UnboundMethod(Sugared):
    """A method of a class, without an object."""

    __slots__ = ("name", "type")

    def __init__(self, type: ScriptClassType, name: str) -> None:  # noqa: A002  # the field's own word
        self.type = type
        self.name = name

    def describe(self) -> str:
        return f"the method `{self.name}` of {self.type}"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        first = arguments.positional[0] if arguments.positional else None
        if not isinstance(first, ObjectValue) or first.type is not self.type:
            e.fail(f"{self.describe()} is given no object of {self.type} first")
        rest = Arguments(arguments.positional[1:], arguments.named)
        return call_object_method(e, first, self.name, rest)


def _type_of(compiler: Compiler, python: type, scope: TypeScope) -> Type | None:
    """Return the type that a Python class denotes in annotations, or None."""
    if python is object:
        return AnyType
    if not isinstance(python, type) or not _is_of_programs(python):
        return None
    if is_interface(python):
        return interface_type(compiler, python)
    if issubclass(python, enum.Enum | tuple | BaseException):
        return None
    existing = compiler.program.classes.known(python)
    if existing is not None and not isinstance(existing, ScriptClassType):
        return None
    if python in compiler.declaring:
        # The field of a dataclass is of the class itself, or refers back to it.
        return existing
    return class_type(compiler, python)


def _is_of_programs(python: type) -> bool:
    """Return True if a class is written in Python, outside of the runtime."""
    module = python.__module__
    is_own = module.startswith("everyorder.runtime")
    return bool(python.__flags__ & _HEAP) and not is_own


def _sugar(python: type) -> Sugared | None:
    if not _is_of_programs(python) or issubclass(python, BaseException):
        return None
    if is_interface(python):
        return InterfaceSugar(python)
    if issubclass(python, enum.Enum):
        return _TypedObject(python, lambda _, type_: EnumClass(python, type_))
    if issubclass(python, tuple):
        return _TypedObject(python, lambda _, type_: NamedTupleClass(python, type_))
    return ClassSugar(python)


class _TypedObject(Sugared):
    """An enum, a class of named tuples, or a member: sugar that depends on its type."""

    __slots__ = ("make", "python")

    def __init__(self, python: type, make: Callable[[Emitter, Any], Sugared]) -> None:
        self.python = python
        self.make = make

    def resolve(self, e: Emitter) -> Sugared:
        return self.make(e, type_of_class(e, self.python))


def _member(python: enum.Enum) -> Sugared:
    return _TypedObject(
        type(python), lambda e, type_: EnumValue(e.constant(python, type_))
    )


def install_classes() -> None:
    """Let Python classes be classes of programs."""
    CLASS_TYPE.set(_type_of)
    CLASSES.register("classes", _sugar)
    register_sugar(enum.Enum, _member)


install_runtime()
install_builtins()
register_sugar(Function, FunctionOfProgram)
