"""Our schema language against torch's: the same texts, accepted and printed alike.

True only here: what is asked of one text.  Torch reads it and we read it, or none does;
what both read prints alike; each exception is one that `torch_deviations` predicts.

Of every three texts, one is as the grammar has it, one more of the same is damaged by
one word, and the third is plain again; one in thirty is a known deviation instead.  For
a damaged text that we read and torch does not, one prediction must apply; the reverse
is not asked, since two words of such a text may be wrong at once.  Whatever we read
must print as text that reads back to the same value.
"""

import random
from typing import Any

from harness.systems.torch_deviations import ACCEPTED, PRINTED, REFUSED
from harness.systems.torch_differential_coverage import Coverage
from harness.systems.torch_differential_schemas import SchemaWriter, damaged
from harness.systems.torch_library import load_torch
from runtime.errors.schema import SchemaSyntaxError
from runtime.schema.parser import parse_schema
from runtime.schema.schema import Schema

_DEVIANT_EVERY = 30


def compare_schemas(coverage: Coverage, count: int, seed: int) -> list[str]:
    """The differences that nobody predicted, as text; counts go to `coverage`.

    Raises:
        ImportError: there is no torch.
    """
    chance = random.Random(seed)  # noqa: S311  # repeatable on purpose
    writer = SchemaWriter(chance)
    differences = []
    for number in range(count):
        deviant = number % _DEVIANT_EVERY == 0
        written = writer.deviant() if deviant else writer.text()
        text, whole = written.text, deviant or number % 3 != 1
        if whole:
            coverage.constructs.update(written.constructs)
        else:
            text = damaged(chance, text)
        coverage.numbers["schema texts" if whole else "damaged schema texts"] += 1
        found = _compare(coverage, text, whole)
        if found:
            differences.append(f"schema {text!r}: {found}")
    return differences


def _compare(coverage: Coverage, text: str, whole: bool) -> str | None:
    """What is wrong with one text, None if nothing is."""
    theirs, ours = _theirs(text), _ours(text)
    if ours is not None and parse_schema(str(ours)) != ours:
        return f"{ours} does not read back"
    if theirs is None:
        if ours is None:
            return "a whole text that nobody reads" if whole else None
        fired = [each.__name__ for each in ACCEPTED if each(text)]
        coverage.predictions.update(fired)
        return None if fired else f"only we read it, as {ours}"
    refused = [each.__name__ for each in REFUSED if each(text, theirs)]
    coverage.predictions.update(refused)
    if refused or ours is None:
        return None if refused and ours is None else f"{refused} foretold, read {ours}"
    printed = str(theirs)
    for predict in PRINTED:
        changed = predict(printed, theirs)
        coverage.predictions[predict.__name__] += changed != printed
        printed = changed
    return None if printed == str(ours) else f"{printed} foretold, printed {ours}"


def _theirs(text: str) -> Any:
    try:
        return load_torch()._C.parse_schema(text)
    except (RuntimeError, ValueError, IndexError):
        return None


def _ours(text: str) -> Schema | None:
    try:
        return parse_schema(text)
    except SchemaSyntaxError:
        return None
