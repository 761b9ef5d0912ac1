"""The built-in operators, namespace `core`, installed on the default dispatcher."""

from runtime.operators.handles import core
from runtime.operators.install import install

__all__ = ["core", "install"]
