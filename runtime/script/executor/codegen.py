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
  again in each trip of a loop and after everything that may run other code;
- an operator on tensors looks up its bound kernel as its bound call does, but its entry
  only once in a run (in `bound_kernels` of the namespace); if the dispatcher's state
  has changed since the run began, it is called as by the register executor;
- every special case is handled by the function of the step;
- a plan that is nested deeper than Python's compiler allows raises `TooNested`.

The line number in a traceback identifies the node.
"""

from collections.abc import Callable, Sequence
from functools import partial
from operator import is_, is_not
from typing import Any

from everyorder.runtime.base.codegen import generated
from everyorder.runtime.dispatch.call_stub import bits_of
from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.dispatch.state import OperatorMap
from everyorder.runtime.dispatch.watch import WATCH
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.schema.binding import presenters_of
from everyorder.runtime.schema.types import (
    DictType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
)
from everyorder.runtime.script.executor.graph_plan import (
    LIGHT,
    BlockPlan,
    Control,
    Planner,
    PlanStep,
)
from everyorder.runtime.script.executor.node_kernels import plan_of_function
from everyorder.runtime.script.ir import Node
from everyorder.runtime.script.passes.inline import callee
from everyorder.runtime.script.primitives import NAMESPACE
from everyorder.runtime.script.primitives.operator_calls import (
    BoundCall,
    KernelLookup,
    PrimitiveCheck,
    is_known,
)
from everyorder.runtime.script.primitives.primitive_table import INLINE, overflow_tests

# CPython allows 20 nested blocks; the `try` around the body is one of them.
DEEPEST = 18
# One level of indentation per block, including branches; CPython allows 100.
INDENTED = 80

Function = Callable[..., Any]


class TooNested(Exception):
    """The blocks of a plan are nested too deeply for generated code."""


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


class _PlanWriter:
    """The writer of the lines of a plan; `nodes` has the node of each line."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.lines: list[str] = []
        self.nodes: list[Node | None] = []
        self.node: Node | None = None
        self.margin = 0
        self.depth = 0
        # The objects that the text refers to, by name.
        self.values: dict[str, Any] = {}
        self.names: dict[int, str] = {}
        self.functions = 0
        # Namespace -> operators whose entries are looked up once in a run.
        self.linked: dict[str, list[tuple[str, BoundCall]]] = {}
        self.inlined: list[BoundCall] = []
        # First: `_fast` must be computed again; second: other code may have run.
        self.fast_check = (True, False)
        # Within a group of primitives: the variant that is being written.
        self.way = ""

    # Lines

    def put(self, line: str) -> None:
        self.lines.append("    " * self.margin + line)
        self.nodes.append(self.node)

    def value(self, place: int) -> str:
        """Return the text of a register: a variable, or a constant."""
        if place not in self.planner.constants:
            return f"v{place}"
        if place not in self.names:
            constant = self.planner.template[place]
            if constant is None or constant is True or constant is False:
                self.names[place] = repr(constant)
            elif constant.__class__ is int or constant.__class__ is str:
                self.names[place] = f"({constant!r})"
            else:
                self.names[place] = f"c{place}"
                self.values[f"c{place}"] = constant
        return self.names[place]

    def several(self, places: Sequence[int]) -> str:
        return ", ".join(map(self.value, places))

    def function(self, function: Any, letter: str = "f") -> str:
        """Return a new name for a function."""
        self.functions += 1
        name = f"{letter}{self.functions}"
        self.values[name] = function
        return name

    # The whole

    def whole(self) -> list[str]:
        layout = self.planner.layout
        body = _DeferredLines(self)
        self.margin = 2
        with body:
            self.block(layout)
            results = [self.value(each) for each in layout.results]
            if len(results) == 1:
                self.put(f"return {results[0]}")
            else:
                self.put(f"return ({', '.join(results)})" if results else "return None")
        self.margin, self.node = 0, None
        with _DeferredLines(self) as head:
            names = ", ".join(f"v{each}" for each in layout.parameters)
            self.put(f"def execute({names}):")
            self.margin = 1
            self.prelude()
            self.put("try:")
        self.margin = 1
        with _DeferredLines(self) as end:
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
        for step in layout.steps:
            if not self.way and _is_quiet(step):
                group.append(step)
                continue
            self.group(group)
            group = []
            self.step(step)
        self.group(group)

    def group(self, steps: Sequence[PlanStep]) -> None:
        """Write steps that run no other code: both variants, selected by one test."""
        if not any(map(_has_primitives, steps)):
            for step in steps:
                self.step(step)
            return
        is_stale, is_foreign = self.fast_check
        if is_stale:
            test = "_fast = _first and _dispatcher.state is _state"
            test += " and not _watch.active"
            if is_foreign:
                test += " and _thread['view'] is _view"
            self.put(test)
        self.fast_check = (False, False)
        for word, way in (("if _fast:", "fast"), ("else:", "slow")):
            self.node = steps[0].node
            self.put(word)
            self.way = way
            self.deeper(False)
            for step in steps:
                self.step(step)
            self.back(False)
        self.way = ""

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

    def free(self, places: Sequence[int]) -> None:
        if places:
            self.put(" = ".join((*(f"v{each}" for each in places), "None")))

    def move(self, sources: Sequence[int], targets: Sequence[int]) -> None:
        pairs = [
            (f"v{target}", self.value(source))
            for source, target in zip(sources, targets, strict=True)
            if source != target
        ]
        if pairs:
            left, right = zip(*pairs, strict=True)
            self.put(f"{', '.join(left)} = {', '.join(right)}")

    def deeper(self, takes_block: bool) -> None:
        self.depth += takes_block
        self.margin += 1
        if self.depth > DEEPEST or self.margin > INDENTED:
            raise TooNested

    def back(self, took_block: bool) -> None:
        self.depth -= took_block
        self.margin -= 1

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
        condition, *results = body.results
        self.move(carried, parameters)
        self.put(f"if {self.value(going)}:")
        self.deeper(False)
        self.put(f"for v{index} in range({self.value(trips)}):")
        self.deeper(True)
        # Another trip may have run other code, and another thread may run at any time.
        is_foreign = self.fast_check[1] or not all(map(_is_calm, body.steps))
        self.fast_check = (True, is_foreign)
        self.block(body)
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
        self.back(True)
        self.back(False)
        self.fast_check = (True, is_foreign)
        self.move(parameters, step.outputs)
        self.free(body.freed_parameters)

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
        if step.bound is not None and _is_tensorial(step):
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
        names = [f"v{each}" for each in step.outputs]
        return f"{', '.join(names)} = " if names else ""

    def plain(self, step: PlanStep) -> str | None:
        """Return the line of a node that runs no user code, or None."""
        node, target = step.node, self.target(step)
        operands = [self.value(each) for each in step.inputs]
        match node.kind:
            case "prim::unchecked_cast":
                return f"{target}{operands[0]}"
            case "prim::TupleConstruct" if not _has_name(node):
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
        target, trusted = self.target(step), bound.trusted
        if self.way != "fast":
            self.put(f"{target}{self.function(step.call)}({', '.join(operands)})")
            self.fast_check = self.fast_check if self.way else (True, True)
            return
        self.inlined.append(bound)
        words = INLINE.get(trusted)
        if trusted in (is_, is_not) and not all(map(str.isidentifier, operands)):
            # Python warns about `is` with a literal number or text.
            words = None
        if words is None:
            words = f"{self.function(trusted, 'r')}({', '.join(operands)})"
        else:
            words = words.format(*operands)
        self.put(f"{target}{words}")
        template, constants = self.planner.template, self.planner.constants
        values = [template[each] if each in constants else None for each in step.inputs]
        margin = self.margin
        for test in overflow_tests(trusted, values):
            self.put(f"if {test.format(f'v{step.outputs[0]}')}:")
            self.margin += 1
        if self.margin > margin:
            # The primitive itself raises, with its message.
            self.put(f"{target}{self.function(step.call)}({', '.join(operands)})")
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


class _DeferredLines:
    """Lines that are collected apart from the lines of the writer."""

    def __init__(self, writer: _PlanWriter) -> None:
        self.writer = writer
        self.lines: list[str] = []
        self.nodes: list[Node | None] = []

    def __enter__(self) -> "_DeferredLines":
        writer = self.writer
        writer.lines, self.lines = self.lines, writer.lines
        writer.nodes, self.nodes = self.nodes, writer.nodes
        return self

    def __exit__(self, *_: object) -> None:
        writer = self.writer
        writer.lines, self.lines = self.lines, writer.lines
        writer.nodes, self.nodes = self.nodes, writer.nodes


# Kinds whose steps run no user code.
_QUIET = frozenset(
    {
        *("prim::unchecked_cast", "prim::TupleConstruct", "prim::TupleIndex"),
        *("prim::TupleUnpack", "prim::ListConstruct"),
    }
)


def _is_calm(step: PlanStep) -> bool:
    """Return True if a step, loops included, runs no user code."""
    if step.control is Control.CALL:
        return _is_quiet(step)
    inner = [each for block in step.blocks for each in block.steps]
    return step.control is not Control.WITH and all(map(_is_calm, inner))


def _is_quiet(step: PlanStep) -> bool:
    """Return True if a step runs no user code, and contains no loop."""
    if step.control is Control.IF:
        return all(_is_quiet(each) for block in step.blocks for each in block.steps)
    if step.control is not Control.CALL:
        return False
    if step.bound is None or step.bound.trusted is None:
        return step.node.kind in _QUIET
    if not all(_is_plain(each.type) for each in step.node.inputs):
        return False
    # A step whose kernel is overridden would slow down its group.
    return is_known(default_dispatcher().state, step.bound)


def _is_plain(type_: Type) -> bool:
    """Return True if operators on values of a type run only Python's code."""
    if isinstance(type_, ListType | OptionalType):
        return _is_plain(type_.element)
    if isinstance(type_, DictType):
        return _is_plain(type_.key) and _is_plain(type_.value)
    if isinstance(type_, TupleType):
        return all(map(_is_plain, type_.elements))
    return type_ in LIGHT


def _has_primitives(step: PlanStep) -> bool:
    inner = [each for block in step.blocks for each in block.steps]
    return step.bound is not None or any(map(_has_primitives, inner))


def _has_name(node: Node) -> bool:
    return bool(getattr(node.output.type, "qualname", ""))


def _is_tensorial(step: PlanStep) -> bool:
    """Return True if an operator takes tensors and returns one, and is ordinary."""
    assert step.bound is not None, "the step of an operator is bound"
    schema, node = step.bound.reading.schema, step.node
    if step.bound.reading.maker is None or schema.is_varret:
        return False
    # Namespaces with few operators do not cache bound kernels.
    state, namespace = default_dispatcher().state, step.bound.reading.namespace
    if not isinstance(state.namespaces.get(namespace), OperatorMap):
        return False
    if [each.type for each in schema.returns] != [TensorType]:
        return False
    tensors = 0
    for value, argument in zip(node.inputs, schema.arguments, strict=True):
        kind = argument.fake_type
        if isinstance(kind, ListType) and kind.element is not TensorType:
            continue
        if value.type is TensorType:
            tensors += 1
        elif "Tensor" in str(kind) and "None" not in str(value.type):
            return False
    return tensors > 0
