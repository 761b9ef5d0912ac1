"""Upstream's paths, for what programs import by them and has another home here."""

from everyorder.runtime.utils import _python_dispatch, _pytree

__all__ = ["_python_dispatch", "_pytree"]
