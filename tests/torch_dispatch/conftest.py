"""Every test with a world is run twice: by the short ways, and by the general one."""

from collections.abc import Iterator

import pytest

from everyorder.runtime.torch_dispatch import fallback
from tests.torch_dispatch.worlds import Ours, opened


@pytest.fixture(params=["short", "general"])
def world(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ours]:
    if request.param == "general":
        monkeypatch.setattr(fallback, "fast_path", lambda schema, general: None)
    with opened(Ours) as made:
        yield made
