"""Plans: what is saved and computed where certain arguments require grad.

True only here: how a formula says what it needs.  A formula is a function; the names of
its parameters are all that is ever saved of a call:

| parameter                     | is given                                            |
|-------------------------------|-----------------------------------------------------|
| `grad`, `grad0`, `grad1`, ... | the gradient of the first, second, ... result       |
| `grads`                       | the gradients of all results, None where none came  |
| the name of an argument       | its value; a tensor is saved with its version       |
| `result`, `result0`, ...      | a result of the call                                |
| an argument's name + `_shape` | its shape, or the shapes of a list of tensors       |
| ... `_dtype`, `_device`       | its dtype, its device                               |
| ... `_layout`                 | its shape, strides and offset                       |
| `needs`                       | which gradients are wanted, of a joint formula      |

A trailing underscore is for names that Python knows (`input_`).  A formula of one
argument returns its gradient; of a list of tensors, a list of gradients; a joint one,
whose key is the tuple of all arguments that have gradients, a tuple of them.

How it works: a plan is two functions, whose texts follow from the parameters:

    def keep(a0, a1, a2):                       def run(node, grads):
        return [saved(a1)]                          v0, = node.values
                                                    return [f0(grads[0], given(v0))]

The text of `saved` and `given` stands in their places: both are on the path of every
call that is recorded.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.autograd.modes import GRAD
from runtime.autograd.saved import (
    TRACKED,
    modified,
    restore,
    restore_output,
    save,
)
from runtime.errors.autograd import GraphFreed
from runtime.errors.python_dispatch import UndefinedResult
from runtime.generated import block, numbered, template

Formula = Callable[..., Any]
Formulas = Mapping[str | tuple[str, ...], Formula]

# How a saved value is kept and given back.
PLAIN, TENSOR, TENSORS, RESULT = range(4)
# No operator has more results, nor more formulas.
MOST = 10


@dataclass(frozen=True, slots=True)
class Saved:
    """One saved value: which argument or result, how, and its name in errors."""

    kind: int
    place: int
    name: str
    read: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to save and to run where certain arguments require grad.

    `keep(*arguments)` gives the saved arguments as a list; the saved results are put
    behind them.  `run(node, gradients)` gives a gradient for each edge.
    """

    arguments: tuple[Saved, ...]
    results: tuple[Saved, ...]
    keep: Callable[..., list[Any]]
    run: Callable[[Any, list[Any]], Any]
    # Whether tensors are saved: what else is saved need not be let go.
    holds: bool


@dataclass(frozen=True, slots=True)
class Call:
    """What a plan is made from: the operator's name, arguments and gradients.

    `kinds` are those of the arguments; `places` the arguments that have gradients, of
    which `lists` says that the only one is a list; `mask` those that are wanted.
    """

    operator: str
    names: tuple[str, ...]
    kinds: tuple[int, ...]
    places: tuple[int, ...]
    lists: bool
    mask: int


def plan_of(call: Call, formulas: Formulas) -> Plan:
    """The plan of a call; a pure function of both."""
    edges = [call.names[place] for place in call.places]
    wanted = [name for bit, name in enumerate(edges) if call.mask >> bit & 1]
    chosen = []
    for key, formula in formulas.items():
        if {*wanted} & {*((key,) if isinstance(key, str) else key)}:
            chosen.append((key, formula))
    needed = [name for _, formula in chosen for name in parameters_of(formula)]
    found = {name: _saved(call, name) for name in dict.fromkeys(needed)}
    arguments = {n: s for n, s in found.items() if s and s.kind != RESULT}
    results = {n: s for n, s in found.items() if s and s.kind == RESULT}
    values = [*arguments.values(), *results.values()]
    given = {saved.name: f"x{place}" for place, saved in enumerate(values)}
    needs = tuple(name in wanted for name in edges)
    calls: dict[str, str] = {}
    for place, (key, formula) in enumerate(chosen):
        written = ", ".join(
            given.get(name) or _gradient(name) for name in parameters_of(formula)
        )
        if isinstance(key, str):
            calls[key] = f"f{place}({written})"
        else:
            assert [*key] == edges, "a joint formula is for all gradients, in order"
            calls[""] = f"f{place}({written})"
    if "" in calls or call.lists:
        returned = next(iter(calls.values()))
    else:
        returned = f"[{', '.join(calls.get(name, 'None') for name in edges)}]"
    keep = _keep(len(call.names), tuple(arguments.values()))
    run = _run(tuple(values), returned)
    formulas_used = tuple(formula for _, formula in chosen)
    return Plan(
        tuple(arguments.values()),
        tuple(results.values()),
        keep(call.operator),
        run(call.operator, formulas_used, needs),
        any(each.kind != PLAIN for each in values),
    )


@template("autograd plan", "operator", TRACKED=TRACKED, save=save)
def _keep(count: int, arguments: tuple[Saved, ...]) -> list[str]:
    kept = ", ".join(map(_kept, arguments))
    checks = [
        f"if {_present(saved)}a{saved.place}.key_bits & TRACKED != TRACKED: "
        f"save(a{saved.place}, operator)"
        for saved in arguments
        if saved.kind == TENSOR
    ]
    return block(f"def keep({numbered(count)}):", [*checks, f"return [{kept}]"])


def _present(saved: Saved) -> str:
    return f"a{saved.place} is not None and "


def _kept(saved: Saved) -> str:
    a = f"a{saved.place}"
    if saved.kind == TENSOR:
        version = f"0 if {a}._place is None else {a}._place[0].version"
        return f"None if {a} is None else ({a}, {version})"
    if saved.kind == TENSORS:
        return f"[None if t is None else save(t, operator) for t in {a}]"
    return saved.read.format(a)


@template(
    "autograd plan",
    "operator, formulas, needs",
    GRAD=GRAD,
    GraphFreed=GraphFreed,
    UndefinedResult=UndefinedResult,
    modified=modified,
    restore=restore,
    restore_output=restore_output,
)
def _run(values: tuple[Saved, ...], returned: str) -> list[str]:
    taken = "".join(f"v{place}, " for place in range(len(values)))
    text = [
        "values = node.values",
        "if values is None: raise GraphFreed(operator=operator)",
        *([f"{taken}= values"] if taken else []),
    ]
    for place, saved in enumerate(values):
        v, x = f"v{place}", f"x{place}"
        name = repr(saved.name)
        if saved.kind == TENSOR:
            text += [
                f"if {v} is None: {x} = None",
                "else:",
                f"    {x}, version = {v}; place = {x}._place",
                "    if version != (0 if place is None else place[0].version):",
                f"        raise modified({v}, operator, {name})",
            ]
        elif saved.kind == TENSORS:
            text.append(f"{x} = [t and restore(t, operator, {name}) for t in {v}]")
        elif saved.kind == RESULT:
            text += [
                f"if {v} is None:",
                f"    raise UndefinedResult(operator=operator, result={name})",
                "if node.host is not None:",
                f"    {x} = node.host({v}, operator, {name})",
                "elif GRAD.enabled:",
                f"    {x} = restore_output({v}, node, {name})",
                "else:",
                f"    {x}, version, _ = {v}; place = {x}._place",
                "    if version != (0 if place is None else place[0].version):",
                f"        raise modified(({x}, version), operator, {name})",
            ]
        else:
            text.append(f"{x} = {v}")
    called = [place for place in range(MOST) if f"f{place}(" in returned]
    return [
        *[f"f{place} = formulas[{place}]" for place in called],
        *block("def run(node, grads):", [*text, f"return {returned}"]),
    ]


def _gradient(name: str) -> str:
    """How the text says a parameter that is not saved."""
    if name in ("needs", "grads"):
        return name
    return f"grads[{int(name[4:] or 0)}]"


def parameters_of(formula: Formula) -> tuple[str, ...]:
    """What a formula needs, by name."""
    code = formula.__code__
    return tuple(
        name.removesuffix("_") for name in code.co_varnames[: code.co_argcount]
    )


def _saved(call: Call, name: str) -> Saved | None:
    """How a parameter is saved; None for gradients and `needs`, which are not."""
    if name in call.names:
        place = call.names.index(name)
        return Saved(call.kinds[place], place, name, "{}")
    if name == "needs" or (name.startswith("grad") and name[4:] in _GRADS):
        return None
    if name.startswith("result") and name[6:] in _NUMBERS:
        return Saved(RESULT, int(name[6:] or 0), name)
    argument, _, what = name.rpartition("_")
    assert argument in call.names, f"{call.operator}: what is {name}?"
    place = call.names.index(argument)
    several = what == "shape" and call.kinds[place] == TENSORS
    return Saved(PLAIN, place, name, _READERS["shapes" if several else what])


_NUMBERS = ("", *map(str, range(MOST)))
_GRADS = ("s", *_NUMBERS)

# How facts of an argument are read.
_READERS = {
    "shape": "{}.shape",
    "shapes": "tuple([t.shape for t in {}])",
    "dtype": "{}.dtype",
    "device": "{}.device",
    "layout": "({0}.shape, {0}.strides, {0}.offset)",
}
