"""Structured operators: one declaration, every form of the operator on every backend.

    def plan_hypot(self, other):
        device = common_device(self, other)
        dtype = result_type(self, other)
        require_dtype("self", dtype, FLOATS, "floating-point dtypes")
        shape = broadcast(self.shape, other.shape)
        compute = compute_dtype(dtype)
        return CallPlan(((shape, dtype),), device, (self, other), compute)

    @composite("double(Tensor self) -> Tensor")
    def double(self):                          # its docstring is shown by help()
        return core.add(self, self)

    OPERATORS = (
        Structured("hypot", "Tensor self, Tensor other", plan_hypot, in_place=True),
        double,
    )

A module with a tuple `OPERATORS` is installed if `runtime.operators.install.FAMILIES`
lists it.  `Structured` defines, for each of CPU, CUDA and Meta:

========== ============================== ==========================================
form       schema                         kernel
========== ============================== ==========================================
functional as declared                    plan, make the outputs, run
in place   `hypot_(Tensor(a!) self, ...)` plan, check against `self`, run, return it
out=       `hypot.out(..., out)`          plan, check against `out`, run, return it
========== ============================== ==========================================

The out= form of several results, `sort.out(..., values, indices)`, has a target for
each, of the name of the result.  Results without names have no out= form.

`composite` declares a function of other operators, `Unstructured` any kernels by key.

Rules:
- a planning function makes all checks; the checks of a kernel (index values, division
  of integers by zero) precede its writes, so that no output is written in part;
- errors are raised without the operator's name, or with that of a kernel: the kernel
  that the dispatcher calls sets the name of its operator;
- the functional CPU kernel saves its plans if the declaration sets `saves_plans`
  (`runtime.operators.declare.saved_plans`);
- `fast` may wrap it instead, `fast_in_place` and `fast_out` the other forms:
  `fast(general)` returns the function to call, which computes some calls itself and
  passes all others to `general` with the same arguments; it is only a shorter path to
  the same result;
- the other forms of a composite compute the result and then copy it, under the checks
  of every target;
- the targets of several results share no memory;
- a name is `name` or `name.overload`; the in-place form of `clamp.Tensor` is
  `clamp_.Tensor`, its out= form `clamp.Tensor_out`;
- dumps show the form and the backend: `add_cpu`, `add__cuda`, `add_out_meta`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from string import ascii_lowercase
from typing import Any

from everyorder.runtime.dispatch.kernel import Kernel, direct
from everyorder.runtime.operators.declare.allocate_outputs import (
    MODULES,
    REFUSALS,
    adopt,
    check_target,
    check_targets,
    pretend,
    produce,
    table_of,
    write_to,
    write_to_each,
)
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    ALL,
    BOOL,
    FLOAT32,
    HALVES,
    CallPlan,
    Work,
    require_dtype,
)
from everyorder.runtime.operators.declare.saved_plans import saving_plans
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.promotion import promote_types, result_type
from everyorder.runtime.tensors.tensor import Tensor

EXPLICIT = "CompositeExplicitAutograd"
IMPLICIT = "CompositeImplicitAutograd"

Planner = Callable[..., CallPlan]

# Wraps the general kernel in one that computes some calls itself.
Fast = Callable[[Callable[..., Any]], Callable[..., Any]]


def summary(function: Callable[..., Any]) -> str:
    """Return the first sentence of a docstring, which `help()` shows."""
    return (function.__doc__ or "").partition("\n")[0].partition("  Raises")[0]


# The suffix of a kernel's name in dumps; other keys are in lower case.
SHOWN_KEYS = {
    IMPLICIT: "composite",
    EXPLICIT: "explicit",
    "BackendSelect": "select",
}


def shown_name(name: str) -> str:
    """Return `name.overload` as one word."""
    return name.replace(".", "_")


def composite(
    schema: str,
    *,
    only: str = "",
    takes: frozenset[DType] = ALL,
    wide: bool = False,
    tags: tuple[str, ...] = (),
    explicit: bool = False,
    public: bool = True,
    autocast: str = "",
    in_place: bool = False,
    out: bool = False,
    dtype_of_out: bool = False,
) -> Callable[..., "Unstructured"]:
    """Declare an operator as a function of other operators, by its schema.

    The first line of the function's docstring is the sentence of `help()`; an operator
    that is not `public` is an attribute of `ops.core` only.  `takes` are
    the dtypes of its tensors together; `wide` computes 16-bit floats in 32 bits, and
    rounds once, at the end.  An `explicit` operator has its own gradient formula.
    `in_place` and `out` add these forms; with `dtype_of_out`, that of `out` computes in
    its dtype, if that holds the elements and the last argument, `dtype`, is None.
    """
    key = EXPLICIT if explicit else IMPLICIT
    name, _, rest = schema.partition("(")
    arguments, _, returns = rest.rpartition(") -> ")

    def declare(function: Callable[..., Any]) -> Unstructured:
        says = summary(function) if public else ""
        run = _widened(function) if wide else function
        if takes is not ALL:
            run = _refusing(run, takes)
        forms = []
        if in_place:
            written, text = in_place_schema(name, arguments)
            forms.append(
                other_form(text, key, tags, _onto_self(written, run, explicit))
            )
        if out:
            written, text = out_schema(name, arguments, returns)
            # Without gradients: autograd refuses it, as every out= form.
            names = target_names(returns)
            onto = (
                _onto_out(written, run, dtype_of_out)
                if len(names) == 1
                else _onto_each(written, run, names)
            )
            forms.append(other_form(text, EXPLICIT, tags, onto))
        kernels = {key: naming(f"core::{name}", run)}
        return Unstructured(schema, kernels, tags, says, only, autocast, tuple(forms))

    return declare


def in_place_schema(name: str, arguments: str) -> tuple[str, str]:
    """Return the name and the schema of the form that writes to `self`."""
    base, dot, overload = name.partition(".")
    name = f"{base}_{dot}{overload}"
    written = arguments.replace("Tensor self", "Tensor(a!) self", 1)
    return name, f"{name}({written}) -> Tensor(a!)"


def out_schema(name: str, arguments: str, returns: str = "Tensor") -> tuple[str, str]:
    """Return the name and the schema of the form that writes to its targets."""
    base, _, overload = name.partition(".")
    name = f"{base}.{overload}_out" if overload else f"{base}.out"
    star = "" if "*" in arguments else "*, "
    before = f"{arguments}, " if arguments else ""
    names = target_names(returns)
    targets = ", ".join(
        f"Tensor({letter}!) {each}"
        for letter, each in zip(ascii_lowercase, names, strict=False)
    )
    results = "Tensor(a!)" if len(names) == 1 else f"({targets})"
    return name, f"{name}({before}{star}{targets}) -> {results}"


def target_names(returns: str) -> tuple[str, ...]:
    """Return the arguments of an out= form; none if a result has no name."""
    if returns.startswith("Tensor"):
        return ("out",)
    results = returns.strip("()").split(", ")
    names = [each.partition("Tensor ")[2] for each in results]
    return tuple(names) if all(names) else ()


def other_form(
    schema: str, key: str, tags: tuple[str, ...], function: Callable[..., Any]
) -> "OperatorDefinition":
    """Return another form of an operator, of one kernel."""
    name = f"{shown_name(schema.partition('(')[0])}_{SHOWN_KEYS[key]}"
    return OperatorDefinition(schema, tags, ((key, direct(function, name)),))


def _onto_self(
    name: str, function: Callable[..., Any], explicit: bool
) -> Callable[..., Any]:
    """Return a function that copies the result to its first argument."""

    def run(self: Tensor, *arguments: Any) -> Any:
        # Gradient formulas of the called operators may need the old value of `self`.
        needs_old = not explicit and self.requires_grad
        result = function(core.clone(self) if needs_old else self, *arguments)
        check_target(self, "self", result.shape, result.dtype, result.device)
        # Autograd must not count a second write for an explicit operator.
        return adopt(self, result) if explicit else core.copy_(self, result)

    return naming(f"core::{name}", run)


def _onto_out(
    name: str, function: Callable[..., Any], dtype_of_out: bool = False
) -> Callable[..., Any]:
    """Return a function that copies the result to its last argument."""

    def run(*arguments: Any) -> Any:
        *inputs, out = arguments
        if dtype_of_out and inputs[-1] is None:
            first = inputs[0].dtype
            if promote_types(first, out.dtype) is out.dtype and out.dtype is not BOOL:
                inputs[-1] = out.dtype
        result = function(*inputs)
        check_target(out, "out", result.shape, result.dtype, result.device)
        return adopt(out, result)

    return naming(f"core::{name}", run)


def _onto_each(
    name: str, function: Callable[..., Any], targets: tuple[str, ...]
) -> Callable[..., Any]:
    """Return a function that copies each result to one of its last arguments."""

    def run(*arguments: Any) -> Any:
        given = arguments[-len(targets) :]
        results = function(*arguments[: -len(targets)])
        planned = [(each.shape, each.dtype) for each in results]
        check_targets(given, targets, planned, results[0].device)
        return tuple(map(adopt, given, results))

    return naming(f"core::{name}", run)


def _refusing(
    function: Callable[..., Any], takes: frozenset[DType]
) -> Callable[..., Any]:
    """Return the function with a check of the common dtype of its tensors."""
    names = [*signature(function).parameters]
    fits = ", ".join(sorted(map(str, takes)))

    @wraps(function)
    def run(*arguments: Any) -> Any:
        tensors = [each for each in arguments if isinstance(each, Tensor)]
        if result_type(*tensors) not in takes:
            for name, each in zip(names, arguments, strict=True):
                if isinstance(each, Tensor):
                    require_dtype(name, each.dtype, takes, fits)
        return function(*arguments)

    return run


def _widened(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with 16-bit floats computed in 32 bits."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        tensors = [each for each in arguments if isinstance(each, Tensor)]
        if not any(each.dtype in HALVES for each in tensors):
            return function(*arguments)
        narrow = result_type(*tensors)
        if narrow not in HALVES:  # two kinds of them, or a longer one
            return function(*arguments)
        ready = [
            core.to(each, dtype=FLOAT32)
            if isinstance(each, Tensor) and each.dtype in HALVES
            else each
            for each in arguments
        ]
        return core.to(function(*ready), dtype=narrow)

    return run


def naming(call: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with errors under the name `call`, not its callees'."""

    def run(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except REFUSALS as error:
            error.operator = call
            raise

    return run


@dataclass(frozen=True, slots=True)
class OperatorDefinition:
    """One operator for registration: its schema, its tags and its kernels by key."""

    schema: str
    tags: tuple[str, ...]
    kernels: tuple[tuple[str, Kernel], ...]


@dataclass(frozen=True, slots=True)
class Unstructured:
    """An operator with explicit kernels: dispatch key -> function.

    A function receives every argument by position; a `Kernel` is registered unchanged.
    `says` describes the operator in one sentence: an operator with one is public, and
    `only` restricts it to a `function` or a `method`; see
    `runtime.operators.bindings.python_bindings`.  `autocast` is `low`, `float32` or
    `widest`, a family of `runtime.autograd.autocast`.  `forms` are other forms of the
    operator, registered unchanged.
    """

    schema: str
    kernels: Mapping[str, Callable[..., Any] | Kernel]
    tags: tuple[str, ...] = ()
    says: str = ""
    only: str = ""
    autocast: str = ""
    forms: tuple[OperatorDefinition, ...] = ()

    @property
    def name(self) -> str:
        """Return the operator's name, with the overload, if it has one."""
        return self.schema.partition("(")[0]

    def definitions(self) -> Iterator[OperatorDefinition]:
        """Yield the operator and its other forms."""
        name = shown_name(self.name)
        kernels = tuple(
            (
                key,
                function
                if isinstance(function, Kernel)
                else direct(function, f"{name}_{SHOWN_KEYS.get(key, key.lower())}"),
            )
            for key, function in self.kernels.items()
        )
        yield OperatorDefinition(self.schema, self.tags, kernels)
        yield from self.forms

    def schemas(self) -> Iterator[str]:
        """Yield the schemas of the operator and its other forms."""
        yield self.schema
        yield from (form.schema for form in self.forms)


@dataclass(frozen=True, slots=True)
class Structured:
    """An operator whose forms all follow from its plan; see the module.

    Attributes:
        name: with the overload, if it has one.
        arguments: schema text; `Tensor self` comes first if `in_place`.
        plan: called with the arguments of the functional form.
        returns: schema text; there is an out= form if every result has a name.
        kernel: the default kernel for plans without one, as in a plan; by default the
            kernel of the operator's name.
        in_place, out: the other forms to define.
        tags: of every form.
        saves_plans: True if the functional form on the CPU saves its plans.
        fast, fast_in_place, fast_out: wrap those kernels of the CPU, see the module.
        anywhere: the functional form for backends without kernels, and for calls
            without a tensor (CompositeExplicitAutograd).
        functional: False declares the other forms only.
        backends: the keys that have kernels; at any other the call is refused by name.
        says, only, autocast: as in `Unstructured`.
    """

    name: str
    arguments: str
    plan: Planner
    returns: str = "Tensor"
    kernel: str | Work | None = None
    in_place: bool = False
    out: bool = True
    tags: tuple[str, ...] = ()
    saves_plans: bool = False
    fast: Fast | None = None
    fast_in_place: Fast | None = None
    fast_out: Fast | None = None
    anywhere: Callable[..., Any] | None = None
    functional: bool = True
    backends: tuple[str, ...] = tuple(MODULES)
    says: str = ""
    only: str = ""
    autocast: str = ""

    def definitions(self) -> Iterator[OperatorDefinition]:
        """Yield the operators of all its forms."""
        for schema, form in self._forms():
            name = shown_name(schema.partition("(")[0])
            kernels = tuple(
                (key, direct(form(key), f"{name}_{key.lower()}"))
                for key in self.backends
            )
            if form == self._functional and self.anywhere is not None:
                anywhere = naming(f"core::{self.name}", self.anywhere)
                explicit = direct(anywhere, f"{name}_explicit")
                kernels = (*kernels, (EXPLICIT, explicit))
            yield OperatorDefinition(schema, self.tags, kernels)

    def schemas(self) -> Iterator[str]:
        """Return the schemas of all its forms."""
        return (schema for schema, _ in self._forms())

    def _forms(self) -> Iterator[tuple[str, Callable[[str], Callable[..., Any]]]]:
        """Yield the schema of each form, and the factory of its kernels by key."""
        if self.functional:
            yield f"{self.name}({self.arguments}) -> {self.returns}", self._functional
        if self.in_place:
            name, schema = in_place_schema(self.name, self.arguments)
            yield schema, self._writing(name, self.fast_in_place, in_place=True)
        names = target_names(self.returns) if self.out else ()
        if names:
            name, schema = out_schema(self.name, self.arguments, self.returns)
            yield (
                schema,
                (
                    self._writing(name, self.fast_out, in_place=False)
                    if len(names) == 1
                    else self._writing_each(name, names)
                ),
            )

    @property
    def own(self) -> str | Work:
        """Return the kernel for a plan without one."""
        return self.kernel or self.name.partition(".")[0]

    def _functional(self, key: str) -> Callable[..., Any]:
        plan, call, own = self.plan, f"core::{self.name}", self.own
        computes = MODULES[key] is not None

        def general(*arguments: Any) -> Any:
            try:
                planned = plan(*arguments)
                if not computes:
                    return pretend(planned)
                return produce(planned, table_of(key), own)
            except REFUSALS as error:
                error.operator = call
                raise

        if key == "CPU" and self.saves_plans:
            results = self.returns.count("Tensor")
            return saving_plans(call, self.arguments, results, plan, own, general)
        return general if self.fast is None or key != "CPU" else self.fast(general)

    def _writing(
        self, name: str, fast: Fast | None, in_place: bool
    ) -> Callable[[str], Callable[..., Any]]:
        """Return the factory of the kernels of an in-place or out= form."""
        plan, call, own = self.plan, f"core::{name}", self.own
        argument, place, end = ("self", 0, None) if in_place else ("out", -1, -1)

        def form(key: str) -> Callable[..., Any]:
            computes = MODULES[key] is not None

            def general(*arguments: Any) -> Any:
                try:
                    planned = plan(*arguments[:end])
                    table = table_of(key) if computes else None
                    return write_to(arguments[place], argument, planned, table, own)
                except REFUSALS as error:
                    error.operator = call
                    raise

            return general if fast is None or key != "CPU" else fast(general)

        return form

    def _writing_each(
        self, name: str, targets: tuple[str, ...]
    ) -> Callable[[str], Callable[..., Any]]:
        """Return the factory of the kernels of an out= form of several results."""
        plan, own, count = self.plan, self.own, len(targets)

        def form(key: str) -> Callable[..., Any]:
            computes = MODULES[key] is not None

            def general(*arguments: Any) -> Any:
                planned = plan(*arguments[:-count])
                table = table_of(key) if computes else None
                return write_to_each(arguments[-count:], targets, planned, table, own)

            return naming(f"core::{name}", general)

        return form
