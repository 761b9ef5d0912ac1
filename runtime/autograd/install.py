"""Installing autograd on a dispatcher, through public libraries.

True only here: which kernel an operator gets at which key; its schema tells:

| operator  | how it is told            | Autograd         | ADInplaceOrView    |
|-----------|---------------------------|------------------|--------------------|
| composite | CompositeImplicitAutograd | none             | falls through      |
| out= form | writes to a keyword       | refuses grad     | raises the version |
| in place  | writes to its first       | checks, records, | raises the version |
|           | argument                  | rebases          |                    |
| ... view  | its tag `inplace_view`    | checks, records  | raises the version |
| view      | an alias, nothing written | records          | notes the base     |
| constant  | the table of formulas     | falls through    | falls through      |
| others    |                           | records          | falls through      |

Rules: an operator without tensors falls through at ADInplaceOrView, and gets nothing
else; an operator without formulas is recorded as by the fallback, and refuses by name
to be run backwards; what falls through is not touched by `runtime.autograd.versions`;
the default dispatcher is installed on once, when this module is imported.
"""

from collections.abc import Callable, Collection
from typing import Any

from runtime.autograd.autocast import install_autocast
from runtime.autograd.fallback import not_implemented
from runtime.autograd.formulas import (
    CONSTANT_OPERATORS,
    CONSTANT_RESULTS,
    FORMULAS,
)
from runtime.autograd.formulas.elementwise import nothing
from runtime.autograd.history import SEVERAL
from runtime.autograd.inplace import modifying, showing
from runtime.autograd.plan import Formulas, is_tensor, is_tensor_list, recipe_of
from runtime.autograd.recording import asking, recording, refusing_out
from runtime.autograd.versions import bumping, following
from runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from runtime.dispatch.kernel import Kernel, fallthrough, linked
from runtime.dispatch.library import Library
from runtime.keys import DispatchKey
from runtime.locks import waited_for
from runtime.operators import install as install_operators
from runtime.operators.call import NAMESPACE
from runtime.schema.schema import Schema

# What dumps show as the place of registration.
ORIGIN = "core autograd"

# Of operators that write nothing and make no views.
_PASSING = (("ADInplaceOrView", fallthrough),)

_LOCK = waited_for()
_KEPT: dict[str, tuple[Library, ...]] = {}


def install(dispatcher: Dispatcher | None = None) -> tuple[Library, ...]:
    """Register autograd's kernels for every operator of `core` that is defined.

    On the default dispatcher this happens once, the operators with it; asked again, the
    same libraries are returned.  Another dispatcher has its operators already.
    """
    if dispatcher is not None and dispatcher is not default_dispatcher():
        return _installed(dispatcher)
    with _LOCK:
        if NAMESPACE not in _KEPT:
            install_operators()
            _KEPT[NAMESPACE] = _installed(default_dispatcher())
        return _KEPT[NAMESPACE]


def _installed(dispatcher: Dispatcher) -> tuple[Library, ...]:
    libraries = {
        key: Library(NAMESPACE, "IMPL", key, dispatcher=dispatcher, origin=ORIGIN)
        for key in ("Autograd", "ADInplaceOrView")
    }
    entries = [*dispatcher.state.namespaces.get(NAMESPACE, {}).values()]
    for entry in entries:
        schema = entry.schema
        if schema is None:
            continue
        composite = DispatchKey.CompositeImplicitAutograd in entry.implementations
        definition = entry.definition
        tags = () if definition is None else definition.tags
        for key, kernel in _PASSING if composite else kernels_of(schema, tags):
            libraries[key].impl(entry.name, kernel, debug=kernel.facts.name)
    autocast = install_autocast(dispatcher, ORIGIN)
    return (*libraries.values(), *autocast)


def kernels_of(
    schema: Schema, tags: Collection[str] = ()
) -> tuple[tuple[str, Kernel], ...]:
    """The kernels of an operator, by key; see the table of the module."""
    arguments = schema.arguments
    if not any(is_tensor(a.type) or is_tensor_list(a.type) for a in arguments):
        return _PASSING
    shown = str(schema.name).partition("::")[2].replace(".", "_")
    written = [argument for argument in arguments if argument.is_write]
    if written:
        bump = linked(bumping(schema), f"{shown}_version")
        if written[0].kwarg_only:
            refuse = linked(refusing_out(schema), f"{shown}_autograd")
            return ("Autograd", refuse), ("ADInplaceOrView", bump)
        record = showing if "inplace_view" in tags else modifying
        return ("Autograd", _in_place(schema, shown, record)), ("ADInplaceOrView", bump)
    autograd = ("Autograd", _functional(schema, shown))
    # What is detached is no view: it does not follow its base.
    if any(a.alias is not None for a in arguments) and shown != "detach":
        several = is_tensor_list(schema.returns[0].type)
        follow = following(schema, SEVERAL if several else "")
        return autograd, ("ADInplaceOrView", linked(follow, f"{shown}_view"))
    return autograd, *_PASSING


def _functional(schema: Schema, shown: str) -> Kernel:
    name = _short(schema)
    if name in CONSTANT_OPERATORS:
        return fallthrough
    formulas = FORMULAS.get(name)
    if formulas is None:
        return linked(not_implemented(), f"{shown}_autograd")
    recipe = recipe_of(schema, formulas, CONSTANT_RESULTS.get(name, frozenset()))
    return linked(recording(schema, recipe), f"{shown}_autograd")


def _in_place(schema: Schema, shown: str, record: Callable[..., Any]) -> Kernel:
    formulas = _in_place_formulas(schema)
    if formulas is None:
        return linked(not_implemented(), f"{shown}_autograd")
    recipe = recipe_of(schema, formulas)
    assert recipe.call.places[0] == 0, "the first gradient is that of what is written"
    kernel = asking(schema, recipe.call.places, lambda run: record(run, recipe))
    return linked(kernel, f"{shown}_autograd")


def _in_place_formulas(schema: Schema) -> Formulas | None:
    name = _short(schema)
    base, dot, overload = name.partition(".")
    plain = base.removesuffix("_") + dot + overload
    if plain in CONSTANT_OPERATORS:
        return {schema.arguments[0].name: nothing}
    return FORMULAS.get(name) or FORMULAS.get(plain)


def _short(schema: Schema) -> str:
    return str(schema.name).partition("::")[2]


install()
