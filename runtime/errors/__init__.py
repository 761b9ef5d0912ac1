"""Every error of the runtime, by the area that raises it."""

from runtime.errors.base import EveryorderError

__all__ = ["EveryorderError"]
