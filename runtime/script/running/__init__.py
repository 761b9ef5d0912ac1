"""Running programs: plans, executors, tasks, and the boundary to Python."""

from everyorder.runtime.hooks import ready
from everyorder.runtime.script.running.boundary import (
    Frame,
    check_value,
    register_test,
    script_frames,
    taker,
    test_of,
)
from everyorder.runtime.script.running.pool import (
    ExecutorOptions,
    ForkFuture,
    Pool,
    executor,
    executor_options,
    fork_pool,
    set_executor,
)
from everyorder.runtime.script.running.run import ExecutionPlan, call, plan_of, run
from everyorder.runtime.script.running.steps import register_step

__all__ = [
    "ExecutionPlan",
    "ExecutorOptions",
    "ForkFuture",
    "Frame",
    "Pool",
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
