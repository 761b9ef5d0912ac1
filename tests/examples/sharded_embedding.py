"""Sharded embeddings: lookups that are promised at once and made when they are needed.

Recommendation models keep tables of embeddings in shards, each of which has some of
the rows.  A lookup asks every shard for its part, which takes its time, while the dense
half of the model has work to do.  So the sparse half gives an `Await`: nothing runs
until the first attribute of the result is asked for, and then once.

Run as it is, this shows the model in Python and as a program, in which order its halves
run, and that a saved program does the same.
"""

import io

from everyorder import runtime
from everyorder.runtime import jit

Await = runtime.futures.Await


class Pooled:
    """One vector for each sample and table, by the name of the table."""

    def __init__(self, names: list[str], vectors: list[runtime.Tensor]) -> None:
        self.names = names
        self.vectors = vectors

    def of(self, name: str) -> runtime.Tensor:
        """The vectors of one table, [samples, width]."""
        return self.vectors[self.names.index(name)]

    def joined(self) -> runtime.Tensor:
        """Those of all tables beside each other, [samples, tables * width]."""
        return runtime.cat(self.vectors, 1)


class Shard(runtime.Module):
    """The rows of a table from `first` on, [rows, width]."""

    def __init__(self, weight: runtime.Tensor, first: int) -> None:
        super().__init__()
        self.weight = runtime.Parameter(weight)
        self.first = first

    def forward(self, rows: runtime.Tensor) -> runtime.Tensor:
        """The sums of the rows that lie here, [samples, width], of [samples, per]."""
        here = rows - self.first
        count = self.weight.shape[0]
        is_here = (here >= 0) & (here < count)
        found = runtime.embedding(self.weight, here.clamp(0, count - 1))
        zero = runtime.zeros_like(found)
        return runtime.where(is_here.unsqueeze(-1), found, zero).sum(1)


class Table(runtime.Module):
    """A table whose rows lie in shards."""

    def __init__(self, weight: runtime.Tensor, shards: int) -> None:
        super().__init__()
        size = -(-weight.shape[0] // shards)
        self.shards = runtime.ModuleList(
            Shard(weight[first : first + size].clone(), first)
            for first in range(0, weight.shape[0], size)
        )
        self.width = weight.shape[1]

    def forward(self, rows: runtime.Tensor) -> runtime.Tensor:
        """The sums of the rows, [samples, width]."""
        total = runtime.zeros(rows.shape[0], self.width)
        for shard in self.shards:
            total = total + shard(rows)
        return total


class Sparse(runtime.Module):
    """All tables; what it gives is looked up when it is asked for."""

    def __init__(self, users: Table, items: Table) -> None:
        super().__init__()
        self.users = users
        self.items = items

    def look_up(self, users: runtime.Tensor, items: runtime.Tensor) -> Pooled:
        """Ask the shards now."""
        print("the shards are asked")
        return Pooled(["users", "items"], [self.users(users), self.items(items)])

    def forward(self, users: runtime.Tensor, items: runtime.Tensor) -> Await[Pooled]:
        """Promise to ask them."""
        return jit.awaitable(self.look_up, users, items)


class Model(runtime.Module):
    """A dense half and a sparse one, and what is made of both."""

    def __init__(self, sparse: Sparse, width: int) -> None:
        super().__init__()
        self.sparse = sparse
        self.dense = runtime.Parameter(runtime.ones(3, width))

    def forward(
        self, x: runtime.Tensor, users: runtime.Tensor, items: runtime.Tensor
    ) -> tuple[runtime.Tensor, runtime.Tensor]:
        """Scores, [samples], and the vectors of the users, [samples, width]."""
        pooled = self.sparse(users, items)
        print("the dense half runs")
        hidden = runtime.relu(x @ self.dense)
        # The first attribute waits; the second one finds what is there.
        scores = (runtime.cat([hidden, pooled.joined()], 1)).sum(1)
        return scores, pooled.of("users")


def made() -> Model:
    """A small model: tables of 5 and 7 rows, in shards of two and three."""
    users = Table(runtime.arange(10.0).reshape(5, 2), 3)
    items = Table(runtime.arange(14.0).reshape(7, 2) / 10, 3)
    return Model(Sparse(users, items), 2)


SAMPLES = (
    runtime.ones(2, 3),
    runtime.tensor([[0, 4], [2, 2]]),
    runtime.tensor([[6], [1]]),
)


def main() -> None:
    """Run the model in Python, as a program, and as a program that was saved."""
    model = made()
    program = jit.script(model)
    file = io.BytesIO()
    jit.save(program, file)
    file.seek(0)
    for what in (model, program, jit.load(file)):
        scores, users = what(*SAMPLES)
        print(scores.tolist(), users.tolist())


if __name__ == "__main__":
    main()
