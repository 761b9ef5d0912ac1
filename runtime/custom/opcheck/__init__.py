"""Checking operators against their schema and their registrations."""

from everyorder.runtime.custom.opcheck.checks import CHECKS, opcheck

__all__ = ["CHECKS", "opcheck"]
