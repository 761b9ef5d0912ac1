"""The pure engine: explores a `System`, knows numbers only, touches no file."""

from harness.engine.auto import choose
from harness.engine.budget import DEFAULT as DEFAULT_BUDGET
from harness.engine.budget import Budget, Progress
from harness.engine.explorer import explore
from harness.engine.operations import (
    Operations,
    Ordering,
    operations_of,
    ordering_of,
    state_of,
)
from harness.engine.protocol import (
    Base,
    Caveat,
    History,
    Relations,
    State,
    StateForm,
    Symmetry,
    System,
)
from harness.engine.replay import Action, Fault, Replay, replay
from harness.engine.replay_id import (
    ReplayId,
    decode,
    encode,
    fits,
    scenario_tag,
    tag_of,
)
from harness.engine.result import (
    KINDS,
    Closure,
    Counts,
    Exploration,
    Kind,
    Square,
    Vacuity,
    Violation,
)
from harness.engine.strategy import KNOWN as KNOWN_STRATEGIES
from harness.engine.strategy import Plan, Strategy, parse, plan
from harness.engine.theory import ASSUMPTIONS, GUARANTEES

__all__ = [
    "ASSUMPTIONS",
    "DEFAULT_BUDGET",
    "GUARANTEES",
    "KINDS",
    "KNOWN_STRATEGIES",
    "Action",
    "Base",
    "Budget",
    "Caveat",
    "Closure",
    "Counts",
    "Exploration",
    "Fault",
    "History",
    "Kind",
    "Operations",
    "Ordering",
    "Plan",
    "Progress",
    "Relations",
    "Replay",
    "ReplayId",
    "Square",
    "State",
    "StateForm",
    "Strategy",
    "Symmetry",
    "System",
    "Vacuity",
    "Violation",
    "choose",
    "decode",
    "encode",
    "explore",
    "fits",
    "operations_of",
    "ordering_of",
    "parse",
    "plan",
    "replay",
    "scenario_tag",
    "state_of",
    "tag_of",
]
