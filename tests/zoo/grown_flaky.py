"""Grown registries that fail at random, now and then or half of the time.

Their model is that of the sound registry that they would be without their whim.
"""

from random import Random
from typing import Any

from tests.zoo.grown import Draw, Grown, Memory, Steps, some_steps
from tests.zoo.grown_orders import source
from tests.zoo.model import listed

RATES = (0.01, 0.5)

# Where chance comes from; none of it is the registry's own state.
CHANCES = (
    ("import random\n\nCHANCE = random.SystemRandom()", "CHANCE.random()"),
    ("import os", "int.from_bytes(os.urandom(4)) / 2**32"),
    ("import random", "random.random()"),
    ("import secrets", "secrets.randbelow(10**6) / 10**6"),
)


class Names(Memory):
    """A registry of names, and nothing else."""

    def shown(self, memory: Any, active: Steps) -> tuple[Any, str]:
        return memory, listed(active)


def _flaky(name: str, **parts: str) -> Draw:
    def draw(random: Random) -> Grown:
        rate = random.choice(RATES)
        head, chance = random.choice(CHANCES)
        steps, uses = some_steps(random), ("has",) * random.randrange(1, 3)
        whim = f"{chance} < {rate}"
        code = source(head=head + "\n\n\n", **parts).replace("WHIM", whim)
        model = Names(steps, len(uses))
        return Grown(f"{name}, {rate:.0%} by {chance}", model, code, uses, rate=rate)

    return draw


FLAKY: tuple[Draw, ...] = (
    _flaky(
        "a step raises",
        add='if WHIM:\n    raise Refused("not now")\nself.items.append(name)',
    ),
    _flaky(
        "a look flickers",
        show='return self.names() + ("?" if WHIM else "")',
    ),
    _flaky(
        "a step is lost",
        add="if not WHIM:\n    self.items.append(name)",
        undo="if name in self.items:\n    self.items.remove(name)",
    ),
    _flaky(
        "an undo is lost",
        add="if name not in self.items:\n    self.items.append(name)",
        undo="if not WHIM:\n    self.items.remove(name)",
    ),
)
