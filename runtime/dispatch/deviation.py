"""What a deviation from torch is, as data; the table is `deviations`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deviation:
    """One difference: its name, torch's behaviour, ours, the reason, a prediction."""

    what: str
    upstream: str
    ours: str
    why: str
    predicts: str = ""
