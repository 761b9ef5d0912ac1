"""The pure engine: explores a `System`, knows numbers only, touches no file."""

from harness.engine.alphabet import Alphabet, alphabet_of
from harness.engine.auto import choose
from harness.engine.budget import DEFAULT as DEFAULT_BUDGET
from harness.engine.budget import Budget, Progress
from harness.engine.explorer import explore
from harness.engine.protocol import State, System, Word
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
    Counts,
    Exploration,
    Kind,
    Square,
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
    "Alphabet",
    "Budget",
    "Counts",
    "Exploration",
    "Fault",
    "Kind",
    "Plan",
    "Progress",
    "Replay",
    "ReplayId",
    "Square",
    "State",
    "Strategy",
    "System",
    "Violation",
    "Word",
    "alphabet_of",
    "choose",
    "decode",
    "encode",
    "explore",
    "fits",
    "parse",
    "plan",
    "replay",
    "scenario_tag",
    "tag_of",
]
