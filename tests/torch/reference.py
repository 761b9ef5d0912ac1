"""What the real torch answers, for comparison with our own dispatcher.

True only here: results are torch's, byte for byte, with nothing normalised.

How torch prints (2.13, verified; DEBUG is the description, ORIGIN the library's
`FILE:LINE`, `/dev/null:0` where not given):

    state   definition        debug: registered at ORIGIN
            native kernel     KEY: DEBUG :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]
            Python kernel     KEY: registered at ORIGIN :: (none) [ boxed ]
            fallthrough       KEY: registered at ORIGIN :: (none) [ fallthrough boxed ]
            newer beats older KEY (inactive): ...   alias key: KEY[alias]: ...
    table   KEY: [fallthrough ]DEBUG-or-`registered at ORIGIN` [PROVENANCE]

DEBUG is `impl_t_t`, `default_def_name_t_t` or `default_def_schema_t_t` unless the
step says otherwise.  The name of a Python callable is shown nowhere.  A definition by
name prints alias kind CONSERVATIVE, by a raw schema CONSERVATIVE (default), otherwise
FROM_SCHEMA or what was asked for.  Fallbacks appear in the table only; the built-in
ones print the path and line at which torch was built, read here at run time.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from everyorder.harness.systems.torch import OPERATOR
from tests.torch.bindings import load_torch, perform
from tests.torch.steps import TorchDefine, TorchStep
from tests.torch.system import sweep

_FALLBACK = " [backend fallback]"
_FALLTHROUGH = "fallthrough "


@dataclass(frozen=True, slots=True)
class TorchBuiltinFallback:
    """A fallback that torch itself registers: at `key`, printed as `debug`."""

    key: str
    debug: str
    is_fallthrough: bool


def torch_dump(
    steps: Sequence[TorchStep],
    *,
    removed: Sequence[int] = (),
    operator: str = OPERATOR,
) -> tuple[str, str]:
    """(dump_state, dump_table) after all `steps`, then undoing those in `removed`.

    The operator must be free (no `TorchSystem` stands on it), and everything is taken
    down again, also when a step raises; what torch raises then passes through.
    About 50 microseconds for a handful of steps, 1 ms more for each fallback.
    """
    c = load_torch()._C
    libraries = []
    try:
        for step in steps:
            libraries.append(perform(step, operator, _unused))  # noqa: PERF401 - a raise must leave the list
        for index in removed:
            libraries[index].reset()
        return c._dispatch_dump(operator), c._dispatch_dump_table(operator)
    finally:
        for library in libraries:
            library.reset()
        sweep(operator)


def torch_builtin_fallbacks() -> tuple[TorchBuiltinFallback, ...]:
    """The fallbacks of this torch, in table order, as an operator without kernels
    shows them.
    """
    _, table = torch_dump((TorchDefine("bare() -> ()"),), operator="everyorder_t::bare")
    found = []
    for line in table.splitlines():
        key, _, kernel = line.removesuffix(_FALLBACK).partition(": ")
        assert line.endswith(_FALLBACK), f"no kernel was registered, yet: {line}"
        fallthrough = kernel.startswith(_FALLTHROUGH)
        debug = kernel.removeprefix(_FALLTHROUGH)
        found.append(TorchBuiltinFallback(key, debug, fallthrough))
    return tuple(found)


@functools.cache
def torch_accepted_keys() -> tuple[str, ...]:
    """Every key name to which torch lets a kernel be registered, in torch's order.

    Tried are the names of all runtime keys and of all members of torch's enumeration:
    runtime keys first, then alias keys, building blocks and `Undefined`.
    """
    c = load_torch()._C
    runtime = c._dispatch_keyset_to_string(c._dispatch_keyset_full())
    names = runtime.removeprefix("DispatchKeySet(").removesuffix(")").split(", ")
    library = c._dispatch_library("IMPL", "everyorder_t", "")
    accepted = []
    for name in dict.fromkeys([*names, *c.DispatchKey.__members__]):
        try:
            library.impl_t_t("key_probe", name)
        except RuntimeError:
            continue
        accepted.append(name)
        library.reset()
    return tuple(accepted)


def _unused(*_args: object, **_kwargs: object) -> object:
    raise AssertionError("a dump calls nothing, so no kernel of it can run")
