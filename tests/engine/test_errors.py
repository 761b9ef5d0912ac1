"""The base of the harness's errors."""

import pickle

import pytest

from harness.errors import BadReplayId, HarnessError


def test_errors_cross_a_process_by_their_fields() -> None:
    error = BadReplayId(text="x", reason="it is short")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is BadReplayId
    assert again.fields() == {"text": "x", "reason": "it is short"}
    assert str(again) == "replay id 'x': it is short"


def test_a_leaf_must_say_what_happened() -> None:
    with pytest.raises(NotImplementedError, match="HarnessError does not say"):
        HarnessError().render()
