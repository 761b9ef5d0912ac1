"""Replay ids: histories that a person can type.

A *replay id* is a failing history in at most 24 characters that a person can type.  It
depends only on the scenario's digest, the number of operations and the history; every
platform and version of Python writes and reads the same id.  The form is
`2tttt-bbbbbc`, in lower-case base 32 without i, l, o, u (Crockford's; i and l are read
as 1, o as 0):
- `2`: the version of this form and of the operations;
- `tttt`: 20 bits of the scenario's digest, so that the command finds the scenario;
- `-`: the body is the history itself, as a number in bijective base n_operations;
- `c`: a checksum of all of it and of n_operations: a scenario that gained a step since
  is detected, not misread.

A history that does not fit in 17 characters (85 bits: 28 operations over 8) has a
digest as its body, marked by `.` in place of `-`.  Such an id cannot be decoded:
explore the scenario again with the same strategy and select the violation whose history
encodes to it (`fits`).  After shrinking this is the exception.
"""

from dataclasses import dataclass
from hashlib import blake2b

from everyorder.harness.base.errors import CannotReplay
from everyorder.harness.engine.protocol import History

VERSION = "2"

# Crockford's base 32: no two digits look alike.
DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"

LONGEST = 24

# 24 less version, tag, mark and check.
BODY = 17

# A prime below 32, so that every check is a digit, and every single slip is detected,
# except for the two digits that are equal modulo 31: 0 and z.
CHECK = 31

# Digits of a digest body: 80 bits, no collision among a billion histories.
DIGEST = 16

_TYPED = str.maketrans("ilo", "110")


@dataclass(frozen=True, slots=True)
class ReplayId:
    """A decoded replay id: the scenario's tag, and the history or its digest."""

    tag: str
    history: History | None
    digest: str | None


def scenario_tag(scenario_digest: str) -> str:
    """Return the four characters that identify a scenario."""
    number = int.from_bytes(blake2b(scenario_digest.encode(), digest_size=5).digest())
    return _digits(number % 32**4, 4)


def encode(scenario_digest: str, n_operations: int, history: History) -> str:
    """Return the replay id of a history over that many operations.

    Raises:
        CannotReplay: the history has an unknown operation.
    """
    number = 0
    for operation in history:
        if not 0 <= operation < n_operations:
            raise CannotReplay(
                code="UnknownOperation",
                history=history,
                operation=operation,
                operations=n_operations,
            )
        if number < 32**BODY:
            number = number * n_operations + operation + 1
    head = VERSION + scenario_tag(scenario_digest)
    if number < 32**BODY:
        text = f"{head}-{_digits(number, 1)}"
    else:
        hashed = blake2b(bytes(history), digest_size=DIGEST * 5 // 8).digest()
        text = f"{head}.{_digits(int.from_bytes(hashed), DIGEST)}"
    return text + _check(text, n_operations)


def fits(text: str, scenario_digest: str, n_operations: int, history: History) -> bool:
    """Return True if the id encodes the history; the way to find long histories."""
    return encode(scenario_digest, n_operations, history) == text.lower().translate(
        _TYPED
    )


def tag_of(text: str) -> str:
    """Return the scenario's tag in an id.

    Raises:
        CannotReplay: the text is not a replay id.
    """
    return _parts(text)[0]


def decode(text: str, n_operations: int) -> ReplayId:
    """Decode a replay id over `n_operations` operations.

    Raises:
        CannotReplay: the text is not a replay id, or its check does not hold.
    """
    tag, mark, body, clean = _parts(text)
    if _check(clean[:-1], n_operations) != clean[-1]:
        raise CannotReplay(
            code="BadReplayId",
            text=text,
            reason=(
                f"the check does not hold for {n_operations} operations; either it is "
                "mistyped, or the scenario's steps or uses were changed"
            ),
        )
    if mark == ".":
        return ReplayId(tag, None, body)
    number = 0
    for digit in body:
        number = number * 32 + DIGITS.index(digit)
    operations: list[int] = []
    while number:
        number, operation = divmod(number - 1, n_operations)
        operations.append(operation)
    return ReplayId(tag, tuple(reversed(operations)), None)


def _parts(text: str) -> tuple[str, str, str, str]:
    """Return tag, mark, body, and the whole id in its normal form."""
    clean = text.strip().lower().translate(_TYPED)
    if not 8 <= len(clean) <= LONGEST or clean[5] not in "-.":
        raise CannotReplay(
            code="BadReplayId",
            text=text,
            reason="it is not of the form 2tttt-bbbbc",
        )
    if clean[0] != VERSION:
        raise CannotReplay(
            code="BadReplayId",
            text=text,
            reason=f"it is of version {clean[0]}, this is {VERSION}",
        )
    stray = set(clean[1:5] + clean[6:]) - set(DIGITS)
    if stray:
        raise CannotReplay(
            code="BadReplayId", text=text, reason=f"it holds {min(stray)!r}"
        )
    return clean[1:5], clean[5], clean[6:-1], clean


def _digits(number: int, least: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, 32)
        text = DIGITS[digit] + text
    return text.rjust(least, "0")


def _check(text: str, n_operations: int) -> str:
    total = n_operations
    for place, character in enumerate(text):
        # Weights repeat after 24 places at the earliest: 31 is prime and above 24.
        total += (place + 1) * (DIGITS.find(character) + 2)
    return DIGITS[total % CHECK]
