"""Checking operators: does one do what its schema and its registrations say?"""

from everyorder.runtime.custom.opcheck.checks import CHECKS, opcheck

__all__ = ["CHECKS", "opcheck"]
