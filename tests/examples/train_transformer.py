"""Training a small transformer that continues sequences of letters.

    python -m tests.examples.train_transformer --steps 200

Each sequence repeats a random word; whoever looks back to the letter a word's length
before knows the next one.  Two blocks of causal attention (Vaswani and others, 2017)
with layer norm first; everything is written out, and Adam is that of `train_digits`.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from everyorder import runtime
from everyorder.runtime import Tensor
from tests.examples.train_digits import Adam

LETTERS, LENGTH, WORD = 16, 24, 5
WIDTH, HEADS, BLOCKS, BATCH = 32, 4, 2, 32


def weight(*shape: int) -> Tensor:
    made: Tensor = (runtime.randn(*shape) * shape[0] ** -0.5).detach()
    return made.requires_grad_()


def constant(value: float, *shape: int) -> Tensor:
    made: Tensor = runtime.full(shape, float(value))
    return made.requires_grad_()


@dataclass(slots=True)
class Block:
    """The parameters of attention and of the two layers behind it."""

    norm_1: tuple[Tensor, Tensor]
    asked: tuple[Tensor, Tensor]
    mixed: tuple[Tensor, Tensor]
    norm_2: tuple[Tensor, Tensor]
    wide: tuple[Tensor, Tensor]
    narrow: tuple[Tensor, Tensor]

    def parameters(self) -> list[Tensor]:
        groups = (self.norm_1, self.asked, self.mixed)
        more = (self.norm_2, self.wide, self.narrow)
        return [each for group in (*groups, *more) for each in group]


def block() -> Block:
    d = WIDTH
    return Block(
        (constant(1, d), constant(0, d)),
        (weight(d, 3 * d), constant(0, 3 * d)),
        (weight(d, d), constant(0, d)),
        (constant(1, d), constant(0, d)),
        (weight(d, 4 * d), constant(0, 4 * d)),
        (weight(4 * d, d), constant(0, d)),
    )


class Transformer:
    """Parameters, and the scores of the next letter at each place."""

    def __init__(self) -> None:
        self.letters = weight(LETTERS, WIDTH)
        self.places = weight(LENGTH, WIDTH)
        self.blocks = [block() for _ in range(BLOCKS)]
        self.last = weight(WIDTH, LETTERS), constant(0, LETTERS)

    def parameters(self) -> list[Tensor]:
        inner = [each for one in self.blocks for each in one.parameters()]
        return [self.letters, self.places, *inner, *self.last]

    def __call__(self, letters: Tensor) -> Tensor:
        x: Any = runtime.embedding(self.letters, letters) + self.places
        hidden = runtime.ones(LENGTH, LENGTH, dtype=runtime.bool).tril().logical_not()
        for one in self.blocks:
            seen = runtime.layer_norm(x, [WIDTH], *one.norm_1)
            x = x + attended(seen, one, hidden)
            seen = runtime.layer_norm(x, [WIDTH], *one.norm_2)
            wide = runtime.gelu(seen @ one.wide[0] + one.wide[1])
            x = x + (wide @ one.narrow[0] + one.narrow[1])
        scores: Tensor = x @ self.last[0] + self.last[1]
        return scores


def attended(x: Any, one: Block, hidden: Tensor) -> Any:
    """Each place's mixture of the values of those before it."""
    of_heads = (BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
    asked = (x @ one.asked[0] + one.asked[1]).reshape(*of_heads)
    query, key, value = asked.permute(2, 0, 3, 1, 4)
    scores = query @ key.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5
    shares = runtime.softmax(scores.masked_fill(hidden, float("-inf")), -1)
    mixed = (shares @ value).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH)
    return mixed @ one.mixed[0] + one.mixed[1]


def sequences(chance: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Letters, and the letters that follow them: both of shape (BATCH, LENGTH)."""
    words = chance.integers(0, LETTERS, (BATCH, WORD))
    repeated = np.tile(words, (1, LENGTH // WORD + 2))[:, : LENGTH + 1]
    before, after = repeated[:, :-1].copy(), repeated[:, 1:].copy()
    return runtime.tensor(before), runtime.tensor(after)


def step(model: Transformer, adam: Adam, batch: Sequence[Tensor]) -> float:
    """One step of training; the loss of the places whose next letter can be known."""
    letters, wanted = batch
    scores = model(letters)[:, WORD:].reshape(-1, LETTERS)
    loss: Any = runtime.cross_entropy(scores, wanted[:, WORD:].reshape(-1))
    loss.backward()
    adam.step()
    return float(loss)


def train(steps: int, say: Callable[[str], None] = print) -> float:
    """Train from the same start; the loss of the last step, 2.77 for guesses."""
    runtime.manual_seed(0)
    chance = np.random.default_rng(0)
    model = Transformer()
    adam = Adam(model.parameters(), rate=3e-3)
    loss = float("nan")
    for number in range(steps):
        loss = step(model, adam, sequences(chance))
        if number % 50 == 0:
            say(f"step {number}: loss {loss:.3f}")
    say(f"after {steps} steps: loss {loss:.3f}")
    return loss


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    train(parser.parse_args().steps)
