"""The error of an extra that is not installed.

Who must act: the user who installs the package.
"""

from everyorder.runtime.errors.base import EveryorderError


class PackageMissing(EveryorderError, ImportError):
    """A module needs `package`, which comes with an extra."""

    package: str

    words = """
    PackageMissing: tensors and their operators need the package `{package}`, which is
        not installed.
      to do: python -m pip install 'everyorder[runtime]'
    HypothesisMissing: strategies need the package `{package}`, which is not installed.
      to do: python -m pip install 'everyorder[hypothesis]'
    """
