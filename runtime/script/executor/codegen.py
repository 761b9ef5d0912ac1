"""Code generation: compile a plan to a Python function.

Each register is a local variable:

    def execute(v0, v1):
        _state = _dispatcher.state
        (l4,) = _state.namespaces["core"].bound_kernels[_key]
        try:
            _fast = ...                    # True if no primitive is overridden
            if _fast:
                v3 = v1 + v2
                ...
            else:
                v3 = f3(v1, v2)
                ...
            ...
            return v9
        except _Exception as _error:
            _failed(_error, _error.__traceback__.tb_lineno)
            raise

Rules:
- the generated function behaves as the register executor with the same plan;
- a primitive whose function is a Python operator is generated as that operator, valid
  as long as the registered kernel is that function: `_fast` tests this, and is computed
  again in each trip of a loop and after everything that may run other code; a loop that
  computes with numbers and texts only, which no other thread can change, computes it
  again after `ROUND` trips;
- a result beyond 64 bits is an error of its primitive.  What follows by adding a
  constant is tested first: if its result is small, the one before was, too.  A count
  that starts small and changes by at most `COUNTED` in each trip is not tested, as
  no loop ends within years that would take it out of 64 bits;
- an operator on tensors looks up its bound kernel as its bound call does, but its entry
  only once in a run (in `bound_kernels` of the namespace); if the dispatcher's state
  has changed since the run began, it is called as by the register executor;
- every special case is handled by the function of the step;
- a plan that is nested deeper than Python's compiler allows raises `TooNested`.

The line number in a traceback identifies the node.
"""

from collections.abc import Sequence
from functools import partial
from itertools import chain, islice, repeat
from operator import eq, ge, gt, is_, is_not, le, lt, ne
from typing import Any

from everyorder.runtime.base.codegen import generated
from everyorder.runtime.dispatch.call_stub import bits_of
from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.dispatch.watch import WATCH
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.schema.binding import presenters_of
from everyorder.runtime.schema.types import TensorType
from everyorder.runtime.script.executor.graph_plan import (
    BlockPlan,
    Control,
    Planner,
    PlanStep,
)
from everyorder.runtime.script.executor.line_writer import (
    DeferredLines,
    Function,
    LineWriter,
)
from everyorder.runtime.script.executor.node_kernels import plan_of_function
from everyorder.runtime.script.executor.step_facts import (
    counting,
    fixed,
    has_name,
    has_primitives,
    is_calm,
    is_pure,
    is_quiet,
    is_tensorial,
    overwriting,
    producer,
    reads,
    trusted,
    used_once,
    with_next,
)
from everyorder.runtime.script.passes.inline import callee
from everyorder.runtime.script.primitives import NAMESPACE
from everyorder.runtime.script.primitives.operator_calls import (
    BoundCall,
    KernelLookup,
    PrimitiveCheck,
)
from everyorder.runtime.script.primitives.primitive_table import (
    INLINE,
    keeps_near,
    overflow_tests,
)

# Trips of a loop of numbers after which it is asked again what is registered: some tens
# of microseconds.
ROUND = 1024
# They raise nothing, of numbers and of texts.
_COMPARISONS = frozenset((eq, ge, gt, le, lt, ne))
# The number of trips of a loop without a limit.
_ENDLESS = 2**63 - 1


def text_of(planner: Planner, name: str, failed: Function) -> Function:
    """Return the function that runs a plan; it calls `failed(error, node)` on errors.

    Raises:
        TooNested: the plan is nested too deeply.
    """
    writer = _PlanWriter(planner)
    lines = writer.whole()
    nodes = writer.nodes

    def at_line(error: BaseException, line: int) -> None:
        failed(error, nodes[line - 1] if line <= len(nodes) else None)

    values = writer.values
    values |= {
        "_chain": chain,
        "_islice": islice,
        "_repeat": repeat,
        "_AttributeError": AttributeError,
        "_Exception": Exception,
        "_KeyError": KeyError,
        "_dispatcher": default_dispatcher(),
        "_failed": at_line,
        "_local": LOCAL,
        "_watch": WATCH,
    }
    function: Function = generated(f"program {name}", lines, values)
    return function


class _PlanWriter(LineWriter):
    """The writer of a plan."""

    def __init__(self, planner: Planner) -> None:
        super().__init__(planner)
        # Namespace -> operators whose entries are looked up once in a run.
        self.linked: dict[str, list[tuple[str, BoundCall]]] = {}
        self.inlined: list[BoundCall] = []
        # First: `_fast` must be computed again; second: other code may have run.
        self.fast_check = (True, False)
        # Within a group of primitives: the variant that is being written.
        self.way = ""
        # The step after the one that is being written, in its block.
        self.following: PlanStep | None = None
        # Steps whose results are tested together with the next one.
        self.untested: list[PlanStep] = []
        # The condition of a loop, and what is moved before it is asked.
        self.asked_late: tuple[int, Sequence[int]] = (-1, ())
        # The results of these need no test.
        self.counts: set[int] = set()

    # The whole

    def whole(self) -> list[str]:
        layout = self.planner.layout
        body = DeferredLines(self)
        self.margin = 2
        with body:
            self.block(layout)
            results = [self.value(each) for each in layout.results]
            if len(results) == 1:
                self.put(f"return {results[0]}")
            else:
                self.put(f"return ({', '.join(results)})" if results else "return None")
        self.margin, self.node = 0, None
        with DeferredLines(self) as head:
            names = ", ".join(f"v{each}" for each in layout.parameters)
            self.put(f"def execute({names}):")
            self.margin = 1
            self.prelude()
            self.put("try:")
        self.margin = 1
        with DeferredLines(self) as end:
            self.put("except _Exception as _error:")
            self.put("    _failed(_error, _error.__traceback__.tb_lineno)")
            self.put("    raise")
        self.nodes = [*head.nodes, *body.nodes, *end.nodes]
        return [*head.lines, *body.lines, *end.lines]

    def prelude(self) -> None:
        """Write the lookups that are made once in a run."""
        if not self.linked and not self.inlined:
            return
        self.put("_state = _dispatcher.state")
        # An item of the thread's dictionary costs a third of an attribute access.
        self.put("_thread = _local.__dict__")
        if self.inlined:
            self.values["_known"] = PrimitiveCheck(self.inlined)
            where = f"_state.namespaces[{NAMESPACE!r}].bound_kernels[_known][_view]"
            self.put("_view = _thread['view']")
            self.put("try:")
            self.put(f"    _first = {where}")
            self.put("except (_KeyError, _AttributeError):")
            self.put("    _first = _known(_state)")
        for namespace, operators in self.linked.items():
            finder = self.function(
                KernelLookup(namespace, [each for _, each in operators])
            )
            names = ", ".join(name for name, _ in operators)
            self.put("try:")
            where = f"_state.namespaces[{namespace!r}].bound_kernels[{finder}]"
            self.put(f"    {names}, = {where}")
            self.put("except (_KeyError, _AttributeError):")
            self.put(f"    {names}, = {finder}(_state)")

    # Blocks

    def block(self, layout: BlockPlan) -> None:
        group: list[PlanStep] = []
        for step, self.following in with_next(layout.steps):
            if not self.way and is_quiet(step):
                group.append(step)
                continue
            self.group(group)
            group = []
            self.step(step)
        self.group(group)

    def group(self, steps: Sequence[PlanStep]) -> None:
        """Write steps that run no other code: both variants, selected by one test."""
        if not any(map(has_primitives, steps)):
            for step in steps:
                self.step(step)
            return
        self.check()
        for word, way in (("if _fast:", "fast"), ("else:", "slow")):
            self.node = steps[0].node
            self.put(word)
            self.way = way
            self.deeper(False)
            for step, self.following in with_next(steps):
                self.step(step)
            self.back(False)
        self.way = ""

    def check(self) -> None:
        """Compute `_fast` if it may have changed."""
        is_stale, is_foreign = self.fast_check
        if is_stale:
            test = "_fast = _first and _dispatcher.state is _state"
            test += " and not _watch.active"
            if is_foreign:
                test += " and _thread['view'] is _view"
            self.put(test)
        self.fast_check = (False, False)

    def step(self, step: PlanStep) -> None:
        self.node = step.node
        match step.control:
            case Control.CALL:
                self.call(step)
            case Control.IF:
                self.branch(step)
            case Control.LOOP:
                self.loop(step)
            case Control.WITH:
                self.with_block(step)
        self.free(step.freed)

    def branch(self, step: PlanStep) -> None:
        (condition,) = step.inputs
        before, after = self.fast_check, (False, False)
        for word, block in zip(
            (f"if {self.value(condition)}:", "else:"), step.blocks, strict=True
        ):
            self.node, self.fast_check = step.node, before
            self.put(word)
            self.deeper(False)
            at = len(self.lines)
            for result, output in zip(block.results, step.outputs, strict=True):
                if producer(block, result) is not None:
                    self.moved[result] = output
            self.block(block)
            self.node = step.node
            self.move(block.results, step.outputs)
            self.free(block.freed_results)
            if len(self.lines) == at:
                self.put("pass")
            self.back(False)
            after = after[0] or self.fast_check[0], after[1] or self.fast_check[1]
        self.fast_check = after

    def loop(self, step: PlanStep) -> None:
        (body,) = step.blocks
        trips, going, *carried = step.inputs
        index, *parameters = body.parameters
        self.move(carried, parameters)
        self.counts.update(map(id, counting(self.planner, step)))
        self.put(f"if {self.value(going)}:")
        self.deeper(False)
        # Another trip may have run other code, and another thread may run at any time.
        is_foreign = self.fast_check[1] or not all(map(is_calm, body.steps))
        self.fast_check = (True, is_foreign)
        all_trips = f"range({self.value(trips)})"
        if not self.way and all(map(is_pure, body.steps)) and body.steps:
            unread = index not in body.results and not reads(body.steps, index)
            endless = unread and self.value(trips) == f"({_ENDLESS})"
            self.rounds(step, f"v{index}", "_repeat(None)" if endless else all_trips)
        else:
            self.put(f"for v{index} in {all_trips}:")
            self.deeper(True)
            self.trip(step)
            self.back(True)
        self.back(False)
        self.fast_check = (True, is_foreign)
        self.move(parameters, step.outputs)
        self.free(body.freed_parameters)

    def rounds(self, step: PlanStep, index: str, all_trips: str) -> None:
        """Write a loop whose body runs no other code, in rounds of many trips."""
        trips = f"_trips_{index}"
        a_round = f"_chain(({index},), _islice({trips}, {ROUND - 1}))"
        if all_trips == "_repeat(None)":
            trips, a_round = all_trips, f"_repeat(None, {ROUND})"
        else:
            self.put(f"{trips} = iter({all_trips})")
        self.put(f"for {index} in {trips}:")
        self.deeper(True)
        self.check()
        self.put("if _fast:")
        self.way = "fast"
        self.deeper(False)
        self.put(f"for {index} in {a_round}:")
        self.deeper(True)
        ends = self.trip(step)
        self.back(True)
        if ends:
            self.put("else:")
            self.put("    continue")
            self.put("break")
        self.back(False)
        self.put("else:")
        self.way = "slow"
        self.deeper(False)
        self.trip(step)
        self.back(False)
        self.back(True)
        self.way = ""

    def trip(self, step: PlanStep) -> bool:
        """Write one trip of a loop; return whether it may end the loop."""
        (body,) = step.blocks
        _, *parameters = body.parameters
        condition, *results = body.results
        for parameter, result in zip(parameters, results, strict=True):
            call = overwriting(body, parameter, result)
            # A test of the value would call again, with the parameter's.
            if call is not None and not self.tests(call):
                self.moved[result] = parameter
        # Of a loop in both variants at once, the condition is asked behind them.
        if self.way == "fast":
            self.asked_late = condition, parameters
        self.block(body)
        self.asked_late = (-1, ())
        self.node = step.node
        again = self.value(condition)
        if condition in body.parameters:
            # The moves may overwrite it.
            self.put(f"_going = {again}")
            again = "_going"
        self.move(results, parameters)
        self.free([each for each in body.freed_results if each != condition])
        if again != "True":
            self.put(f"if not {again}:")
            self.put("    break")
        self.put("pass")
        return again != "True"

    def with_block(self, step: PlanStep) -> None:
        (body,) = step.blocks
        make = self.function(step.call)
        (entered,) = body.parameters
        self.put(f"with {make}({self.several(step.inputs)}) as v{entered}:")
        self.fast_check = (True, True)
        self.deeper(True)
        self.block(body)
        self.node = step.node
        self.move(body.results, step.outputs)
        self.put("pass")
        self.back(True)
        self.fast_check = (True, True)
        self.free((*body.freed_results, *body.freed_parameters))

    # Calls

    def call(self, step: PlanStep) -> None:
        if step.bound is not None and step.bound.trusted is not None:
            self.primitive(step, step.bound)
            return
        words = self.plain(step)
        if words is not None:
            self.put(words)
            return
        if step.bound is not None and is_tensorial(step):
            self.tensorial(step, step.bound)
        elif (function := callee(step.node)) is not None:
            self.call_function(step, function)
        else:
            name = self.function(step.call)
            self.put(f"{self.target(step)}{name}({self.several(step.inputs)})")
        self.fast_check = (True, True)

    def call_function(self, step: PlanStep, function: Any) -> None:
        memo = self.function(function.memo, "m")
        make = self.function(partial(plan_of_function, function), "p")
        # The object of a method is an argument, the function is not.
        is_method = step.node.kind == "prim::CallMethod"
        arguments = self.several(step.inputs if is_method else step.inputs[1:])
        entry = f'({memo}.get("plan") or {make}()).execute'
        self.put(f"{self.target(step)}{entry}({arguments})")

    def target(self, step: PlanStep) -> str:
        """Return the assignment to the results; several are unpacked."""
        names = list(map(self.name, step.outputs))
        return f"{', '.join(names)} = " if names else ""

    def plain(self, step: PlanStep) -> str | None:
        """Return the line of a node that runs no user code, or None."""
        node, target = step.node, self.target(step)
        operands = [self.value(each) for each in step.inputs]
        match node.kind:
            case "prim::unchecked_cast":
                return f"{target}{operands[0]}"
            case "prim::TupleConstruct" if not has_name(node):
                return f"{target}({''.join(f'{each}, ' for each in operands)})"
            case "prim::TupleIndex":
                return f"{target}{operands[0]}[{node.attributes['index']}]"
            case "prim::TupleUnpack" if operands and len(step.outputs) > 1:
                return f"{target}{operands[0]}"
            case "prim::ListConstruct":
                return f"{target}[{', '.join(operands)}]"
        return None

    def primitive(self, step: PlanStep, bound: BoundCall) -> None:
        operands = [self.value(each) for each in step.inputs]
        target, function = self.target(step), bound.trusted
        if self.way != "fast":
            self.put(f"{target}{self.function(step.call)}({', '.join(operands)})")
            self.fast_check = self.fast_check if self.way else (True, True)
            return
        self.inlined.append(bound)
        words = INLINE.get(function)
        if function in (is_, is_not) and not all(map(str.isidentifier, operands)):
            # Python warns about `is` with a literal number or text.
            words = None
        if words is None:
            words = f"{self.function(function, 'r')}({', '.join(operands)})"
        else:
            words = words.format(*operands)
            if function in _COMPARISONS and self.is_asked_next(step):
                self.texts[step.outputs[0]] = words
                return
        self.put(f"{target}{words}")
        self.untested.append(step)
        following = self.following
        if (
            following is not None
            and {*step.outputs} & {*following.inputs}
            and keeps_near(trusted(following), fixed(self.planner, following))
            and self.tests(following)
        ):
            # Tested with its result.
            return
        margin = self.margin
        tested, self.untested = self.untested, []
        first, *others = self.tests(step) or ("",)
        if first:
            self.put(f"if {first.format(self.name(step.outputs[0]))}:")
            self.margin += 1
            for each in tested[:-1]:
                self.test(each, self.tests(each))
            self.test(step, others)
        self.margin, self.node = margin, step.node

    def is_asked_next(self, step: PlanStep) -> bool:
        """Return True if a value is only the condition of what follows."""
        if not used_once(step):
            return False
        following, (condition, moved) = self.following, self.asked_late
        if following is None:
            return step.outputs == (condition,) and not {*moved} & {*step.inputs}
        return following.control is Control.IF and following.inputs == step.outputs

    def tests(self, step: PlanStep) -> Sequence[str]:
        """Return the nested tests that the result of a step is beyond 64 bits."""
        if id(step) in self.counts:
            return ()
        return overflow_tests(trusted(step), fixed(self.planner, step))

    def test(self, step: PlanStep, tests: Sequence[str]) -> None:
        """Write nested tests of a result, and below them the call that raises."""
        margin, self.node = self.margin, step.node
        for test in tests:
            self.put(f"if {test.format(self.name(step.outputs[0]))}:")
            self.margin += 1
        if tests:
            # The primitive itself raises, with its message.
            operands = self.several(step.inputs)
            self.put(f"{self.target(step)}{self.function(step.call)}({operands})")
        self.margin = margin

    def tensorial(self, step: PlanStep, bound: BoundCall) -> None:
        operands = [self.value(each) for each in step.inputs]
        target, (output,) = self.target(step), step.outputs
        otherwise = f"{self.function(step.call)}({', '.join(operands)})"
        views = f"l{len(self.lines)}"
        self.linked.setdefault(bound.reading.namespace, []).append((views, bound))
        tensors = [
            name
            for name, value in zip(operands, step.node.inputs, strict=True)
            if value.type is TensorType
        ]
        bits = bits_of(dict.fromkeys(tensors))
        arg_presenters = presenters_of(bound.reading.schema)
        presented = [
            name if show is None else f"{self.function(show, 's')}({name})"
            for name, show in zip(operands, arg_presenters, strict=True)
        ]
        returns = self.function(bound.reading.convention.returns, "r")
        self.put("if _dispatcher.state is not _state or _watch.active:")
        self.put(f"    {target}{otherwise}")
        self.put("else:")
        self.put("    try:")
        self.put(f"        _kernel = {views}[_thread['view']][{bits}]")
        self.put("    except (_KeyError, _AttributeError):")
        self.put(f"        {target}{otherwise}")
        self.put("    else:")
        self.put(f"        {target}_kernel({', '.join(presented)})")
        self.put("        try:")
        self.put(f"            v{output}.key_bits")
        self.put("        except _AttributeError:")
        self.put(f"            {target}{returns}(v{output})")
