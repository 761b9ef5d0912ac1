"""Laws over frozen states of a dispatcher, over its steps and over whole runs."""

from everyorder.invariants.checking import (
    LAWS,
    check,
    check_memory,
    check_run,
    check_step,
    check_thread,
    forget,
)
from everyorder.invariants.law import (
    SOMETIMES,
    Law,
    Sometimes,
    Violation,
    never_seen,
    sightings,
)
from everyorder.invariants.live import Change
from everyorder.invariants.run import Call, Operation, Run, Surroundings, surroundings
from everyorder.invariants.second_table import second_masks, second_table, slot_reached

__all__ = [
    "LAWS",
    "SOMETIMES",
    "Call",
    "Change",
    "Law",
    "Operation",
    "Run",
    "Sometimes",
    "Surroundings",
    "Violation",
    "check",
    "check_memory",
    "check_run",
    "check_step",
    "check_thread",
    "forget",
    "never_seen",
    "second_masks",
    "second_table",
    "sightings",
    "slot_reached",
    "surroundings",
]
