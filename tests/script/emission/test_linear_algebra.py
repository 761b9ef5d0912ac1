"""`runtime.linalg` in programs: every form that eager calls take."""

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, jit, linalg
from everyorder.runtime.errors.script import ProgramError
from everyorder.runtime.linalg import det

SYMMETRIC = [[2.0, 0.5], [0.5, 1.0]]


def results(x: Tensor, b: Tensor) -> list[Tensor]:
    q, r = runtime.linalg.qr(x)
    u, s, v = linalg.svd(x)
    values, vectors = linalg.eigh(x)
    sign, logarithm = linalg.slogdet(x)
    parts = [runtime.linalg.inv(x), linalg.solve(x, b), det(x), linalg.cholesky(x)]
    parts += [linalg.norm(x), linalg.vector_norm(x, 1), linalg.matrix_norm(x, "nuc")]
    parts += [linalg.norm(x, 2, [0, 1]), linalg.norm(x, dim=1)]
    parts += [q @ r, u @ (s.unsqueeze(1) * v), values, vectors.abs(), sign, logarithm]
    return parts


def test_programs_do_what_eager_calls_do() -> None:
    x, b = runtime.tensor(SYMMETRIC), runtime.ones(2)
    program: Any = jit.script(results)
    for one, other in zip(program(x, b), results(x, b), strict=True):
        assert one.reshape(-1).tolist() == pytest.approx(other.reshape(-1).tolist())


def test_what_does_not_fit_is_refused_in_the_line_of_the_call() -> None:
    def wrong(x: Tensor) -> Tensor:
        return linalg.inv(x, 1, 2)  # type: ignore[no-any-return, call-arg, arg-type]

    with pytest.raises(ProgramError, match=r"runtime\.linalg\.inv") as raised:
        jit.script(wrong)
    assert "return linalg.inv(x, 1, 2)" in str(raised.value)
