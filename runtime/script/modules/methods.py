"""Methods of modules: compiled when somebody first asks, once for each type.

True only here: how a method of a Python class becomes one of a module type.

Rules:
- a method is known to the type from when it has been compiled; one that cannot be, is
  not, and is tried again when it is asked for again;
- the getter and the setter of a property are methods, `__x_getter` and `__x_setter`;
- hooks are methods by the names of their functions.
"""

import inspect
from typing import Any

from runtime.errors.module import NotScriptable
from runtime.schema.declaration import InterfaceType, ModuleType
from runtime.schema.schema import Schema
from runtime.schema.subtype import misfit
from runtime.schema.types import TensorType, Type
from runtime.script.emission import compile_method
from runtime.script.frontend import Annotations, read_function, read_signature, scope_of
from runtime.script.modules.script_module import GETTER, SETTER
from runtime.script.modules.shape import Shape, shape_of
from runtime.script.program import Function


def method_of(shape: Shape, name: str) -> Function:
    """The method of a name, compiled now if it was not.

    Raises:
        ProgramError: it cannot be compiled.
    """
    found: Any = inspect.getattr_static(shape.python, name)
    return compiled(shape, name, found)


def compiled(shape: Shape, name: str, python: Any) -> Function:
    """A Python function as the method of a name."""
    known: Function | None = shape.type.declaration.functions.get(name)
    if known is None:
        known = compile_method(python, shape.type, shape.program, name=name)
    return known


def property_method(shape: Shape, name: str, accessor: str) -> str:
    """The name of the method that gets, or sets, a property; compiled now."""
    found = inspect.getattr_static(shape.python, name)
    python = found.fget if accessor == "get" else found.fset
    if python is None:
        raise NotScriptable(
            found=f"the property `{name}` of `{shape.python.__name__}`",
            reason=f"it has nothing that {accessor}s it",
        )
    method = (GETTER if accessor == "get" else SETTER).format(name)
    compiled(shape, method, python)
    return method


def hook_methods(shape: Shape) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the methods before and behind a call; compiled now.

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
                found=f"the hook `{name or hook!r}` of `{shape.python.__name__}`",
                reason="a hook is a function of a name of its own",
            )
        compiled(shape, name, hook)
    before = tuple(each.__name__ for each in shape.before)
    return before, tuple(each.__name__ for each in shape.behind)


def method_schema(python: Any, owner: Type) -> Schema:
    """The schema of a method that is not compiled; without annotation it gives a Tensor.

    Raises:
        ProgramError: its annotations mean nothing.
    """
    definition = read_function(python)
    shape = shape_of(owner) if isinstance(owner, ModuleType) else None
    classes: Any = None if shape is None else shape.program.classes
    annotations = Annotations(definition, scope_of(python, definition, classes))
    return read_signature(annotations, python, owner).schema(TensorType)


def check_interface(shape: Shape, wanted: InterfaceType, name: str) -> None:
    """Compile the methods that an interface has; `name` is the attribute's.

    Raises:
        NotScriptable: the module does not have them, or has others of their names.
    """
    for method in wanted.declaration.methods:
        if inspect.isfunction(inspect.getattr_static(shape.python, method, None)):
            method_of(shape, method)
    fault = misfit(shape.type.declaration, wanted.declaration)
    if fault is not None:
        raise NotScriptable(
            found=f"the module `{name}` of class `{shape.python.__name__}`",
            reason=f"it is no {wanted}: {fault}",
        )
