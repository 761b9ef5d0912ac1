"""The error of an extra that is not installed.

Who must act: whoever installs the package.
"""

from everyorder.runtime.errors.base import EveryorderError


class ExtraMissing(EveryorderError, ImportError):
    """Tensors need `package`, which comes with the extra `extra`."""

    package: str
    extra: str = "runtime"

    words = """
    ExtraMissing: tensors and their operators need the package `{package}`, which is
        not installed.
      to do: python -m pip install 'everyorder[{extra}]'
    """
