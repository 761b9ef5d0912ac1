"""What a base knows of its views: all that live, and few that are gone."""

from threading import Barrier, Thread

import runtime
from runtime import Tensor

THREADS = 4
VIEWS = 400


def test_every_view_that_lives_is_told_whoever_made_it() -> None:
    base = runtime.zeros(2, 3)
    start, kept = Barrier(THREADS), list[Tensor]()

    def make() -> None:
        start.wait()
        for number in range(VIEWS):
            view = base.view(3, 2)
            if not number % 7:
                kept.append(view)

    threads = [Thread(target=make) for _ in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not any(view.requires_grad for view in kept)
    base.copy_(runtime.ones(2, 3, requires_grad=True))
    assert len(kept) == THREADS * len(range(0, VIEWS, 7))
    assert all(view.requires_grad for view in kept)


def test_views_that_are_gone_are_forgotten() -> None:
    base = runtime.zeros(2, 3)
    kept = [base.view(6) for _ in range(5)]
    for _ in range(10_000):
        base.view(3, 2)
    history = base._history
    assert history is not None
    assert len(kept) <= len(history.views) < 32
