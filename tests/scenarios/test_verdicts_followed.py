"""The strategies agree where the state is found by following objects.

It is looked for among all that the process has loaded: `make test-long` runs this file
in processes that have loaded little else.
"""

import pytest

from tests.scenarios.agreeing import FOLLOWED, agree, small


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "path" in metafunc.fixturenames:
        metafunc.parametrize("path", small(FOLLOWED))


@pytest.mark.slow
def test_strategies_agree(path: str) -> None:
    agree(small(FOLLOWED)[path])
