"""Upstream's paths: modules that programs import by the names that they have there.

True only here: nothing but where upstream keeps what has another home here.
"""

from runtime.utils import _python_dispatch, _pytree

__all__ = ["_python_dispatch", "_pytree"]
