"""The built-in operators, namespace `core`, installed on the default dispatcher."""

from runtime.operators.call import core
from runtime.operators.install import install

__all__ = ["core", "install"]
