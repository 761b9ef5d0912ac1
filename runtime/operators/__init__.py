"""The built-in operators, namespace `core`, installed on the default dispatcher."""

# ruff: noqa: E402  # first of all, an error that names the extra
from everyorder.runtime.base.extras import require_packages

require_packages()

from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.install import install

__all__ = ["core", "install"]
