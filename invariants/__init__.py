"""Laws over frozen states of a dispatcher, over its steps and over whole runs."""

from invariants.checking import check, check_run, check_step, forget
from invariants.law import Law, Violation
from invariants.laws import LAWS
from invariants.run import Call, Run
from invariants.second_table import second_masks, second_table, slot_reached
from invariants.sometimes import SOMETIMES, Sometimes, never_seen, sightings
from invariants.step import Change
from invariants.surroundings import Surroundings, surroundings

__all__ = [
    "LAWS",
    "SOMETIMES",
    "Call",
    "Change",
    "Law",
    "Run",
    "Sometimes",
    "Surroundings",
    "Violation",
    "check",
    "check_run",
    "check_step",
    "forget",
    "never_seen",
    "second_masks",
    "second_table",
    "sightings",
    "slot_reached",
    "surroundings",
]
