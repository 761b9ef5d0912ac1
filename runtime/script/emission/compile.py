"""Compiling: from functions and classes of Python, and from texts, to a program's.

    compile_function    a Python function, with all that it calls
    compile_text        the functions of a text
    compile_class       a Python class -> its type, with its methods compiled
    ClassSugar          the class in a program: it is called, and has constants

Rules of classes:
- a class is declared first, so that it can refer to itself; then its attributes are
  found, in the body and by compiling `__init__`; methods are compiled when they are
  first used, all others at the end;
- in `__init__` the first assignment to an attribute of the object gives its type;
- a class of which a part cannot be compiled is not declared;
- a dataclass gets the methods that Python makes for it as texts, which are compiled
  like others, but comparisons only where a program compares
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
    IGNORED,
    FunctionOfProgram,
    PythonFunction,
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
from everyorder.runtime.script.emission.operators import install_runtime
from everyorder.runtime.script.emission.python_class import (
    ClassMembers,
    Role,
    class_members,
    dataclass_methods,
    with_defaults,
)
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
    """Compile a Python function, and all that it calls.

    `types` are those of parameters that have no annotation.

    Raises:
        NotScriptable: its source is not there.
        ProgramError: it cannot be compiled, or something that it calls.
    """
    compiler = Compiler(program)
    python = getattr(python, "__func__", python)
    known = compiler.known(python)
    if known is not None:
        return known
    found: Function = compiler.run(lambda: compiler.function(python, types=types))
    return found


def compile_text(
    text: str,
    program: Program = SHARED_PROGRAM,
    names: Mapping[str, Any] = _NO_NAMES,
    *,
    file: str = "",
    path: str = "__torch__",
    is_saved: bool = False,
) -> list[Function]:
    """Compile the functions of a text, which know each other and `names`.

    `path` is what stands before their names; `is_saved`: the compiler has written it.

    Raises:
        ProgramError: it is no program, or cannot be compiled.
    """
    definition = read_text(text, file)
    check(definition.tree, definition.source, is_saved=is_saved)
    compiler = Compiler(program)
    found: list[Function] = compiler.run(
        lambda: _text_functions(compiler, definition, names, path)
    )
    return found


class _TextFunction(PythonFunction):
    """A function of a text, `python`; compiled when it is first used."""

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
        """The compiled function."""
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
                message="a class stands in a text",
                hint="Write functions.",
            )
    return [each.compiled(compiler) for each in functions]


# Classes

# The flag of classes that are written in Python; source: Py_TPFLAGS_HEAPTYPE.
_HEAP = 1 << 9
# In the memo of a program: Python class -> its type, for those that were compiled.
_COMPILED = "compiled classes"


def _has_result(function: Any) -> bool:
    return "return" in getattr(function, "__annotations__", {})


class InitValue(ObjectValue):
    """The object in `__init__`: what is assigned first says what there is."""

    __slots__ = ()

    def declare_attribute(self, e: Emitter, name: str, type: Type) -> None:  # noqa: A002  # the field's own word
        declared = self.declared
        known = declared.declaration.attributes.get(name)
        if known is None:
            self._slot(e, name)
            declared.declaration.add_attribute(name, type)
        elif known is not type:
            message = f"attribute `{name}` of {declared} is of type {known}"
            e.fail(f"{message}, and is annotated as {type}")

    def set_attribute(self, e: Emitter, name: str, value: Sugared) -> None:
        """Set an attribute; a new one, if there is nothing of the name."""
        declaration = self.declared.declaration
        taken = name in declaration.constants or name in declaration.functions
        if name not in declaration.attributes and not taken:
            made = value.value(e)
            self.declare_attribute(e, name, made.type)
            e.untyped.discard(made)
            value = sugar_of_value(made)
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
        """The type, with what the body says of attributes and constants."""
        compiler, python = self.compiler, self.members.python
        classes = compiler.program.classes
        compiled = compiler.program.memo.setdefault(_COMPILED, WeakKeyDictionary())
        known = classes.known(python)
        if isinstance(known, ScriptClassType):
            # A dataclass that was met as a field of another.
            declared = known
        elif self.members.fields:
            compiler.declaring.add(python)
            made = classes(python, TypeScope(classes=compiler.classes))
            compiler.declaring.discard(python)
            assert isinstance(made, ScriptClassType), "dataclasses are declared so"
            declared = made
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
        """The type of an attribute that the body names; raises at its place."""
        with suppress(AnnotationError):
            found = annotated_type(annotation, scope)
            if found is not None:
                return found
        place = self.members.place(name)
        assert isinstance(place, ast.AnnAssign), "it is annotated there"
        return Annotations(self.members.definition, scope).type(place.annotation)

    def compile(self) -> None:
        """Compile `__init__`, and let the rest be compiled behind what is asked for."""
        made = dataclass_methods(self.members, self.declared, self.pending)
        # Some fields cannot be compared: an error only where a program compares.
        self.lazy = {*made} - {"__init__"}
        self.pending |= made
        if "__init__" in self.pending:
            self.compile_method("__init__", None)
        # What is written with its result is only declared by that: others may need it.
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
        """Compile a method, if it has not been."""
        if name in self._active and e is not None:
            # One whose result is known is there already.
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
            # It may be another one that asks now.
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
        made = self.compiler.method(function, self.declared, name, since, sugar=sugar)
        declaration.add_method(name, made.schema)
        declaration.functions[name] = made
        if is_init:
            # It is what finds attributes: nothing waits for it.
            made.graph  # noqa: B018  # it is made when asked for
            if made.schema.returns[0].type is not NoneType_:
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
        """The function of a method that is left to Python; None: it is none."""
        _, python = self.members.functions.get(name, (None, None))
        return python if mark_of(python) in IGNORED else None


def class_type(
    compiler: Compiler, python: type, since: CallChain = ()
) -> ScriptClassType:
    """The type of a Python class, begun to be compiled if it is new.

    Raises:
        NotScriptable: its source is not there.
        ProgramError: it is no class for programs, or a part of it is not.
    """
    known = compiler.program.memo.get(_COMPILED, {}).get(python)
    if known is not None:
        found: ScriptClassType = known
        return found
    made = _ClassCompiler(compiler, class_members(python), since)
    made.compile()
    return made.declared


def compile_class(python: type, program: Program = SHARED_PROGRAM) -> ScriptClassType:
    """Compile a Python class with all of its methods; gives the type of its objects.

    Raises:
        NotScriptable: its source is not there.
        ProgramError: it is no class for programs, or a part of it is not.
    """
    compiler = Compiler(program)
    found: ScriptClassType = compiler.run(lambda: class_type(compiler, python))
    return found


class ClassSugar(PythonObject):
    """A class in a program."""

    __slots__ = ()

    def describe(self) -> str:
        return f"the class `{self.python.__name__}`"

    def type(self, e: Emitter) -> ScriptClassType:
        """The type of its objects, compiled now if it is new."""
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
        made = ObjectValue(node.output)
        if method_schema(e, declared, "__init__") is not None:
            given = with_defaults(e, self.python, arguments)
            call_object_method(e, made, "__init__", given)
        elif arguments.positional or arguments.named:
            e.fail(f"{self.describe()} has no `__init__`, and takes no arguments")
        return made

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
    """The type that a class of Python means where annotations name it."""
    if python is object:
        return AnyType
    if not isinstance(python, type) or not _is_of_programs(python):
        return None
    if is_interface(python):
        return interface_type(compiler, python)
    if issubclass(python, enum.Enum | tuple | BaseException):
        return None
    known = compiler.program.classes.known(python)
    if known is not None and not isinstance(known, ScriptClassType):
        return None
    if python in compiler.declaring:
        # A field of a dataclass is of the class itself, or leads back to it.
        return known
    return class_type(compiler, python)


def _is_of_programs(python: type) -> bool:
    """Whether a class is written in Python, and not in the runtime."""
    module = python.__module__
    is_own = module.startswith("everyorder.runtime")
    return bool(python.__flags__ & _HEAP) and not is_own


def _sugar(python: type) -> Sugared | None:
    if not _is_of_programs(python) or issubclass(python, BaseException):
        return None
    if is_interface(python):
        return InterfaceSugar(python)
    if issubclass(python, enum.Enum):
        return _TypedObject(python, lambda _, known: EnumClass(python, known))
    if issubclass(python, tuple):
        return _TypedObject(python, lambda _, known: NamedTupleClass(python, known))
    return ClassSugar(python)


class _TypedObject(Sugared):
    """An enum, a class of named tuples, or a member: what it is, its type says."""

    __slots__ = ("make", "python")

    def __init__(self, python: type, make: Callable[[Emitter, Any], Sugared]) -> None:
        self.python = python
        self.make = make

    def resolve(self, e: Emitter) -> Sugared:
        return self.make(e, type_of_class(e, self.python))


def _member(python: enum.Enum) -> Sugared:
    return _TypedObject(
        type(python), lambda e, known: EnumValue(e.constant(python, known))
    )


def install_classes() -> None:
    """Let Python classes be classes of programs."""
    CLASS_TYPE.set(_type_of)
    CLASSES.register("classes", _sugar)
    register_sugar(enum.Enum, _member)


install_runtime()
install_builtins()
register_sugar(Function, FunctionOfProgram)
