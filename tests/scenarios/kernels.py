"""Kernels that the scenarios register, named after what they stand for.

True only here: a kernel does next to nothing, because a scenario asks *which* kernel a
call reaches, not what it computes.

Rules:
- a function without annotations is an untyped kernel: it fits any schema and gets the
  arguments that differ from their defaults; that is why this file has some;
- an annotated function is a typed kernel: its signature is part of what is registered.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
# An untyped kernel is one without annotations: that is what is under test.

from typing import Any

from everyorder.runtime.dispatch import boxed, direct, linked
from everyorder.runtime.keys import DispatchKey, KeySet, full_after
from everyorder.runtime.tensors import Tensor


def on_cpu(x, *rest):
    return x


def better_on_cpu(x, *rest):
    return x


def best_on_cpu(x, *rest):
    return x


def on_cuda(x, *rest):
    return x


def on_xla(x, *rest):
    return x


def on_lazy(x, *rest):
    return x


def on_hip(x, *rest):
    return x


def on_meta(x, *rest):
    return x


def on_sparse(x, *rest):
    return x


def on_quantized(x, *rest):
    return x


def on_mkldnn(x, *rest):
    return x


def on_fpga(x, *rest):
    return x


def on_nested(x, *rest):
    return x


def on_private(x, *rest):
    return x


def composed(x, *rest):
    """Made of other operators, differentiable through them."""
    return x


def composed_anew(x, *rest):
    return x


def everywhere(x, *rest):
    """One kernel for all backends, not differentiable by itself."""
    return x


def functional(x, *rest):
    return x


def composed_nested(x, *rest):
    return x


def with_gradient(x, *rest):
    return x


def cpu_with_gradient(x, *rest):
    return x


def cuda_with_gradient(x, *rest):
    return x


def xla_with_gradient(x, *rest):
    return x


def other_with_gradient(x, *rest):
    return x


def in_half(x, *rest):
    """What autocast does on a backend."""
    return x


def batched(x, *rest):
    return x


def traced(x, *rest):
    return x


def chosen(x, *rest):
    """What BackendSelect does: it picks a backend."""
    return x


def in_python(x, *rest):
    return x


def broken(x, *rest):
    raise ArithmeticError("this kernel always fails")


def nothing_useful(x, *rest):
    return "no tensor"


def pair(x, *rest):
    return x, x


def answer(*numbers):
    return 42


def first_of(parts, *rest):
    return parts[0]


def spelled(*arguments, **named):
    """Says what it was given, and how."""
    given = [*map(repr, arguments), *(f"{k}={v!r}" for k, v in sorted(named.items()))]
    return f"({', '.join(given)})"


def spelled_anew(*arguments, **named):
    return f"anew {spelled(*arguments, **named)}"


def spelled_keyed(keyset, *arguments, **named):
    return f"{keyset} {spelled(*arguments, **named)}"


def spelled_fallback(operator, *arguments, **named):
    return f"{operator} {spelled(*arguments, **named)}"


def spelled_stack(operator, keyset, stack):
    """A kernel of the stack convention that says the same."""
    given = [stack.pop() for _ in operator.schema.arguments]
    stack.append(f"{operator} {keyset} {spelled(*reversed(given))}")


def greedy_stack(operator, keyset, stack):
    """Takes what belongs to somebody else."""
    stack[:] = ["all of it"]


def linking(below, keyset):
    """Adds the keyset to what the kernel of the next key says."""
    return lambda *values: f"{keyset} > {below(*values)}"


def linking_by_hand(below, keyset):
    """The same, by what a linked kernel can ask."""
    cpu = below.for_keyset(KeySet(DispatchKey.CPU))
    return lambda *values: f"{below.operator()} {below.schema.name} > {cpu(*values)}"


def linking_anew(below, keyset):
    """A linked kernel that passes a number for the last argument."""
    return lambda *values: below(*values[:-1], 3.5)


def keyed(keyset, x, *rest):
    """Takes the keyset of the call first (`with_keyset=True`)."""
    assert isinstance(keyset, KeySet)
    return x


# What is left of a call when the tracer is done with it.
BELOW_TRACER = full_after(DispatchKey.Tracer)


def pass_below_tracer(keyset, operator, *arguments):
    """A fallback that does nothing but call on."""
    return operator.redispatch(keyset & BELOW_TRACER, *arguments)


def no_cpu(operator, *arguments):
    """A fallback that handles any operator by itself."""
    return arguments[0]


def no_cuda(operator, *arguments):
    return arguments[0]


def watched(operator, *arguments):
    return arguments[0]


def pop_and_push(operator: Any, keyset: KeySet, stack: list[Any]) -> None:
    """A kernel of the stack convention: pops its arguments, pushes its results."""
    arguments = [stack.pop() for _ in operator.schema.arguments]
    stack.append(arguments[-1])


stacked = boxed(pop_and_push, "stacked")
stack_spelled = boxed(spelled_stack, "stack_spelled")
stack_greedy = boxed(greedy_stack, "stack_greedy")
all_spelled = direct(spelled, "all_spelled")
linked_spelled = linked(linking, "linked_spelled")
linked_by_hand = linked(linking_by_hand, "linked_by_hand")
linked_anew = linked(linking_anew, "linked_anew")


def typed_one(x: Tensor) -> Tensor:
    return x


def typed_one_anew(x: Tensor) -> Tensor:
    return x


def typed_two(x: Tensor, y: Tensor) -> Tensor:
    return x


def typed_number(x: Tensor, n: int) -> Tensor:
    return x


def typed_pair(x: Tensor) -> tuple[Tensor, Tensor]:
    return x, x


def typed_count(x: Tensor) -> int:
    return 1


def typed_optional(x: Tensor, y: Tensor | None) -> Tensor:
    return x


def typed_list(parts: list[Tensor]) -> Tensor:
    return parts[0]


def typed_keyed(keyset: KeySet, x: Tensor) -> Tensor:
    """The leading keyset is no argument of the operator."""
    return x


def typed_spelled(x: Tensor, n: int, y: Tensor | None) -> str:
    return str(spelled(x, n, y))


def typed_named(x: Tensor, *, n: int) -> Tensor:
    """The keyword-only parameter gets the argument of its name."""
    return x


def typed_named_twice(x: Tensor, *, n: int, m: float) -> Tensor:
    return x
