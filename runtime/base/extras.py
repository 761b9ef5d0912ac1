"""Packages that the runtime needs and the light installation lacks.

Registering, calling and exploring your kernels needs none of them; tensors, and
what works on tensors, need all.

Rules: packages of modules that import one of them at their top call
`require_packages` first, so that the error names the extra.
"""

from importlib.util import find_spec

from everyorder.runtime.errors.extras import PackageMissing

# The extra `runtime` of pyproject.toml.
PACKAGES = ("numpy", "numba", "ml_dtypes")


def require_packages() -> None:
    """Raise an error if a package of the extra `runtime` is not installed.

    Raises:
        PackageMissing: one of them is not.
    """
    for package in PACKAGES:
        if find_spec(package) is None:
            raise PackageMissing(package=package)


def require_hypothesis() -> None:
    """Raise an error if the extra `hypothesis` is not installed.

    Raises:
        PackageMissing: it is not.
    """
    if find_spec("hypothesis") is None:
        raise PackageMissing(code="HypothesisMissing", package="hypothesis")
