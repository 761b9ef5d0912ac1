"""Checking operators against their schema and their registrations."""

from everyorder.runtime.custom.opcheck.checks import CHECKS, DEFAULT_CHECKS, opcheck

__all__ = ["CHECKS", "DEFAULT_CHECKS", "opcheck"]
