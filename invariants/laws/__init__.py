"""The laws, one file a subject, and all of them together."""

from invariants.laws.catalogue import (
    LAWS,
    MEMORY_LAWS,
    OPERATOR_LAWS,
    RUN_LAWS,
    STATE_LAWS,
    STEP_LAWS,
    THREAD_LAWS,
)

__all__ = [
    "LAWS",
    "MEMORY_LAWS",
    "OPERATOR_LAWS",
    "RUN_LAWS",
    "STATE_LAWS",
    "STEP_LAWS",
    "THREAD_LAWS",
]
