"""The built-in operators, namespace `core`, installed on the default dispatcher."""

from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.install import install

__all__ = ["core", "install"]
