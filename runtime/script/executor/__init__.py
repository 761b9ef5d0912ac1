"""Execution of programs: plans, executors, tasks, and the boundary to Python."""

from everyorder.runtime.base.hooks import ready
from everyorder.runtime.script.executor.node_kernels import register_step
from everyorder.runtime.script.executor.python_interop import (
    Frame,
    check_value,
    register_test,
    script_frames,
    taker,
    test_of,
)
from everyorder.runtime.script.executor.run_function import (
    ExecutionPlan,
    call,
    plan_of,
    run,
)
from everyorder.runtime.script.executor.task_pool import (
    ExecutorOptions,
    ForkFuture,
    TaskPool,
    executor,
    executor_options,
    fork_pool,
    set_executor,
)

__all__ = [
    "ExecutionPlan",
    "ExecutorOptions",
    "ForkFuture",
    "Frame",
    "TaskPool",
    "call",
    "check_value",
    "executor",
    "executor_options",
    "fork_pool",
    "plan_of",
    "register_step",
    "register_test",
    "run",
    "script_frames",
    "set_executor",
    "taker",
    "test_of",
]

ready(__name__)
