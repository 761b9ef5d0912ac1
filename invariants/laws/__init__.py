"""The laws, one file a subject, and all of them together."""

from invariants.laws.catalogue import (
    LAWS,
    OPERATOR_LAWS,
    RUN_LAWS,
    STATE_LAWS,
    STEP_LAWS,
)

__all__ = [
    "LAWS",
    "OPERATOR_LAWS",
    "RUN_LAWS",
    "STATE_LAWS",
    "STEP_LAWS",
]
