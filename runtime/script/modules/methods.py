"""Methods of modules: compiled when somebody first asks, once for each type.

True only here: how a method of a Python class becomes one of a module type.

Rules:
- a method is known to the type from when its schema is, so that methods can call each
  other; if anything that is compiled together fails, all of it is taken back;
- the getter and the setter of a property are methods;
- hooks are methods by the names of their functions;
- a chain takes what its first module does, and gives what its last one does.
"""

import inspect
from collections.abc import Mapping
from typing import Any, get_overloads

from runtime.errors.module import NotScriptable
from runtime.modules import Sequential
from runtime.schema.declaration import Declaration, InterfaceType, ModuleType
from runtime.schema.subtype import misfit
from runtime.schema.types import TensorType, Type
from runtime.script.emission import Compiler, Emitter
from runtime.script.emission.compile import Since
from runtime.script.emission.python_class import getter, setter
from runtime.script.modules.shape import Shape
from runtime.script.program import Function


class Begun:
    """Methods that are compiled now, to be taken back if anything fails."""

    __slots__ = ("methods",)

    def __init__(self) -> None:
        self.methods: list[tuple[Declaration, str]] = []

    def __enter__(self) -> None:
        self.methods = []

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None:
            for declaration, name in self.methods:
                declaration.withdraw(name)
        self.methods = []


_NO_TYPES: Mapping[str, Type] = {}
# Whoever compiles is alone.
BEGUN = Begun()


def method_of(
    shape: Shape,
    name: str,
    compiler: Compiler,
    since: Since = (),
    types: Mapping[str, Type] = _NO_TYPES,
) -> Function:
    """The method of a name, begun now if it was not.

    Raises:
        ProgramError: it cannot be compiled.
    """
    found: Any = inspect.getattr_static(shape.python, name)
    if found is vars(Sequential)["forward"]:
        found, types = _through, {"input": _taken(shape), **types}
    return begun(shape, name, found, compiler, since, types)


def _through(self, input):  # type: ignore[no-untyped-def]  # noqa: A002  # compiled
    value = input
    for module in self:
        value = module(value)
    return value


def _taken(shape: Shape) -> Type:
    """What a chain takes: what its first module does."""
    first = next(iter(shape.type.declaration.attributes.values()))
    forward = None
    if isinstance(first, ModuleType | InterfaceType):
        forward = first.declaration.methods.get("forward")
    if forward is None or len(forward.arguments) < 2:
        return TensorType
    return forward.arguments[1].type


def begun(
    shape: Shape,
    name: str,
    python: Any,
    compiler: Compiler,
    since: Since = (),
    types: Mapping[str, Type] = _NO_TYPES,
) -> Function:
    """A Python function as the method of a name."""
    declaration = shape.type.declaration
    known: Function | None = declaration.functions.get(name)
    if known is None:
        # They are found by name alone; those of another module are others.
        overloads: list[Any] = [*get_overloads(python)]
        if any(each.__globals__ is python.__globals__ for each in overloads):
            raise NotScriptable(
                found=f"the method `{name}` of `{shape.python.__name__}`",
                reason="it has overloads",
                hint="Write one method, with a union or `Any` as type.",
            )
        known = compiler.method(python, shape.type, since=since, name=name, types=types)
        declaration.add_method(name, known.schema)
        declaration.functions[name] = known
        BEGUN.methods.append((declaration, name))
    return known


def asked(e: Emitter, path: str) -> Since:
    """The call because of which something is compiled."""
    return ((path, e.at.source, e.at.span), *e.compiler._since)


def property_method(shape: Shape, name: str, accessor: str, e: Emitter) -> str:
    """The name of the method that gets, or sets, a property; begun now."""
    found = inspect.getattr_static(shape.python, name)
    python = found.fget if accessor == "get" else found.fset
    if python is None:
        e.fail(f"the property `{name}` of {shape.python.__name__} has no {accessor}ter")
    method = (getter if accessor == "get" else setter)(name)
    begun(shape, method, python, e.compiler, asked(e, name))
    return method


def hook_methods(
    shape: Shape, compiler: Compiler
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the methods before and behind a call; begun now.

    Raises:
        NotScriptable: two of them, or a method, have one name.
    """
    taken: dict[str, Any] = {}
    for hook in (*shape.before, *shape.behind):
        name = getattr(hook, "__name__", "")
        other = taken.setdefault(name, hook)
        own = inspect.getattr_static(shape.python, name, hook)
        if not inspect.isfunction(hook) or other is not hook or own is not hook:
            raise NotScriptable(
                found=f"the hook `{name}` of `{shape.python.__name__}`",
                reason="a hook is a function of a name of its own",
            )
        begun(shape, name, hook, compiler)
    before = tuple(each.__name__ for each in shape.before)
    return before, tuple(each.__name__ for each in shape.behind)


def check_interface(
    shape: Shape, wanted: InterfaceType, name: str, compiler: Compiler
) -> None:
    """Compile the methods that an interface has; `name` is the attribute's.

    Raises:
        NotScriptable: the module does not have them, or has others of their names.
    """
    for method in wanted.declaration.methods:
        if inspect.isfunction(inspect.getattr_static(shape.python, method, None)):
            method_of(shape, method, compiler)
    fault = misfit(shape.type.declaration, wanted.declaration)
    if fault is not None:
        raise NotScriptable(
            found=f"the module `{name}` of class `{shape.python.__name__}`",
            reason=f"it is no {wanted}: {fault}",
        )
