"""Run functions of programs.

    plan_of(graph)              returns a new plan of a graph
    run(function, arguments)    runs with arguments of the declared types
    call(function, args, ...)   calls from Python: binds and converts the arguments

Rules:
- a plan is built from a copy of the graph, optimized if the options say so, on the
  first run; the function stores it (`memo["plan"]`), until the options change;
- a call that does not fit the schema is refused before anything runs, by the errors of
  calls (`runtime.errors.call`); lists and dictionaries are passed uncopied;
- there are no locks: an interrupted run leaves no inconsistent state. Two threads that
  run a function for the first time may both plan it, and either plan is valid;
- recursion that is too deep raises `RunningError`, which names the function.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from everyorder.runtime.base.hooks import PLAN
from everyorder.runtime.base.locks import load
from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.schema.types import CODED, TensorType
from everyorder.runtime.schema.values import presenter
from everyorder.runtime.script.executor.codegen import text_of
from everyorder.runtime.script.executor.graph_plan import Inner, Planner, run_steps
from everyorder.runtime.script.executor.line_writer import TooNested
from everyorder.runtime.script.executor.node_kernels import step_of
from everyorder.runtime.script.executor.python_interop import (
    RUN,
    ProgramRun,
    add_frame,
    binder_of,
    note,
)
from everyorder.runtime.script.executor.task_pool import EXECUTOR, ExecutorOptions
from everyorder.runtime.script.ir import Block, Graph, Node, Value, copy_graph
from everyorder.runtime.script.ir.program import Function
from everyorder.runtime.script.passes import OPTIMIZE, captured, run_passes, shapes_for
from everyorder.runtime.tensors.keys import trace_observer

Entry = Callable[..., Any]


class ExecutionPlan:
    """The executable form of a block: `execute` takes arguments and returns results.

    Several results are a tuple, no results are None. `heat` counts runs and trips of
    loops. A plan of a graph whose operators may be fused runs on registers for
    `fuse_after` runs, and is then laid out again, once, for the shapes of the
    arguments: only these tell which operators may share a loop, and a function that
    runs once or twice is not worth a kernel of its own. A later run compiles nothing.
    """

    __slots__ = ("execute", "frame", "graph", "heat", "limit", "name", "options")

    def __init__(
        self,
        block: Block,
        captured: Sequence[Value],
        name: str,
        options: ExecutorOptions,
        graph: Graph | None = None,
    ) -> None:
        self.name = name
        self.options = options
        self.heat = 0
        after = self.options.text_after
        self.limit = sys.maxsize if after is None else after
        # The graph, as long as its operators may still be fused.
        self.graph = graph
        self.lay_out(block, captured)

    def lay_out(self, block: Block, captured: Sequence[Value] = ()) -> None:
        """Lay the block out, and run the new layout from now on."""
        planner = Planner(block, captured, lambda node: step_of(node, _nested))
        # The last register holds the step that raised.
        template = [*planner.template, None]
        # Set at once: another thread may be about to run it.
        self.frame = planner, template, Inner(planner.layout)
        self.execute: Entry = self.run_registers
        if planner.calls and self.options.text_after is not None:
            # In generated code a call takes one Python call, in the register executor
            # three or more. Compile at once, so that the depth of recursion does not
            # depend on earlier runs.
            self.limit, self.graph = 0, None
        if self.graph is not None:
            self.execute = self.run_looking
        elif not self.limit:
            self.warm_up()

    def warm_up(self) -> None:
        """Run generated code from now on, if possible."""
        self.limit = sys.maxsize
        # A plan that is nested too deeply stays on registers.
        with suppress(TooNested):
            self.execute = text_of(self.frame[0], self.name, self.failed)

    def failed(self, error: Exception, node: Node | None) -> None:
        """Add the frame of a node to an exception that it raised.

        Raises:
            RunningError: instead of a `RecursionError`.
        """
        place = None if node is None else node.place
        if isinstance(error, RecursionError) and not isinstance(error, RunningError):
            deep = RunningError(code="TooDeep", function=self.name)
            add_frame(deep, self.name, place)
            raise deep from None
        add_frame(error, self.name, place)

    def run_looking(self, *arguments: Any) -> Any:
        """Run on registers, or fuse for the tensors among the arguments."""
        graph = self.graph
        if self.heat >= self.options.fuse_after and graph is not None:
            self.graph = None
            # Other threads may be running the current graph.
            fused = copy_graph(graph)
            self.lay_out(fused.block if _fuse(fused, arguments) else graph.block)
            return self.execute(*arguments)
        return self.run_registers(*arguments)

    def run_registers(self, *arguments: Any) -> Any:
        """Run on registers."""
        _, template, body = self.frame
        registers = template.copy()
        registers[: len(arguments)] = arguments
        # A reference here would keep released arguments alive.
        del arguments
        try:
            self.heat += 1 + run_steps(body.steps, registers)
        except Exception as error:
            step = registers[-1]
            self.failed(error, None if step is None else step.node)
            raise
        if self.heat >= self.limit and self.graph is None:
            self.warm_up()
        results = body.results
        if len(results) == 1:
            return registers[results[0]]
        return tuple([registers[each] for each in results]) or None


def _fuse(graph: Graph, arguments: Sequence[Any]) -> int:
    """Form groups of operators for tensors like the arguments; return their number."""
    shapes = shapes_for(graph, arguments)
    formed: int = load("everyorder.runtime.script.executor.fusion").fuse(graph, shapes)
    return formed


def _nested(node: Node, name: str) -> tuple[Entry, Sequence[Value]]:
    """Return the entry of a nested graph, or of a block with its captured values."""
    graph = node.attributes.get("graph")
    block = graph.block if isinstance(graph, Graph) else node.blocks[0]
    captured_values = () if isinstance(graph, Graph) else captured(block)
    plan: ExecutionPlan | None = None

    def run_nested(*values: Any) -> Any:
        nonlocal plan
        if plan is None:
            plan = ExecutionPlan(block, captured_values, name, EXECUTOR.options)
        return plan.execute(*values)

    return run_nested, captured_values


def plan_of(graph: Graph, name: str = "") -> ExecutionPlan:
    """Return the plan of a copy of a graph, optimized if the options say so.

    Raises:
        OperatorGone: an operator of the graph is not defined, or has another schema
        now.
    """
    options = EXECUTOR.options
    if options.optimize:
        graph = copy_graph(graph)
        run_passes(graph, OPTIMIZE)
    fuses = options.fuse and any(
        each.type is TensorType for each in graph.block.parameters
    )
    fusible = graph if fuses else None
    return ExecutionPlan(graph.block, (), name or graph.name, options, fusible)


def _plan(function: Function) -> ExecutionPlan:
    plan: ExecutionPlan | None = function.memo.get("plan")
    if plan is None or plan.options is not EXECUTOR.options:
        plan = function.memo["plan"] = plan_of(function.graph, function.name)
    return plan


PLAN.set(_plan)


def run(function: Function, arguments: Sequence[Any]) -> Any:
    """Run a function with all arguments of the declared types and return its value.

    Raises:
        Exception: the program's exception, with its frames.
    """
    return _plan(function).execute(*arguments)


def call(
    function: Function, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] = {}
) -> Any:
    """Call a function from Python and return its value.

    Raises:
        CallError: the call does not fit the schema. Exception: the program's exception,
        with a note of its frames. Warning: a filter turned a warning of the program
        into an error.
    """
    observer = trace_observer()
    if observer is not None:
        return observer.call_function(function, args, kwargs)
    memo = function.memo
    boundary = memo.get("boundary")
    if boundary is None:
        boundary = memo["boundary"] = _boundary(function)
    bind, present = boundary
    arguments = bind(args, kwargs)
    outer, mine = RUN.run, None
    try:
        if outer is None:
            RUN.run = mine = ProgramRun()
        plan = memo.get("plan")
        if plan is None or plan.options is not EXECUTOR.options:
            plan = _plan(function)
        value = plan.execute(*arguments)
        RUN.run = outer
    except BaseException as error:
        # However the run was interrupted, the thread has left it.
        RUN.run = outer
        if isinstance(error, Exception):
            note(error)
        if mine is not None:
            mine.finish(True)
        raise
    if mine is not None:
        mine.is_over = True
        if mine.warned:
            mine.finish(False)
    return value if present is None else present(value)


def _boundary(function: Function) -> tuple[Any, Any]:
    """Return the binder of arguments, and the presenter of the result."""
    schema = function.schema
    types = [each.type for each in schema.returns]
    present = presenter(types[0]) if len(types) == 1 and types[0] in CODED else None
    return binder_of(schema), present
