"""Modules at torch's paths whose contents are defined elsewhere in this package."""

from everyorder.runtime.utils import _python_dispatch, _pytree, checkpoint, dlpack

__all__ = ["_python_dispatch", "_pytree", "checkpoint", "dlpack"]
