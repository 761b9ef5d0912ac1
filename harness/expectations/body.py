"""What is expected at a key: titled texts, or only their digest.

True only here: how any observation becomes titled texts, how those become lines, and
what a digest is made of.

    title: text                one line, if the text has no newline
    title:                     else a block, each line behind two spaces
      first line
    digest 0123...             32 hexadecimal digits

Rules:
- a title stands at the beginning of a line, so its colons are escaped, and whatever
  could make it look like a heading or a line of a block;
- a digest is that of the lines, so it changes when they do, and only then.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

from harness.expectations.escape import (
    block,
    escape,
    hexadecimal,
    unblock,
    unescape,
)

Pairs: TypeAlias = tuple[tuple[str, str], ...]

INDENT = "  "
DIGEST = "digest "

# 128 bits: two of 2^20 bodies collide with a chance below 2e-27.
DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Digest:
    """The digest of a body, in hexadecimal digits."""

    digits: str


Body: TypeAlias = Pairs | Digest


def pairs_of(observation: Hashable) -> Pairs:
    """Any observation as titled texts: pairs as they are, the rest under one title."""
    if isinstance(observation, tuple) and all(map(_is_pair, observation)):
        return observation
    text = observation if isinstance(observation, str) else repr(observation)
    return (("observation", text),)


def digest_of(body: Body) -> Digest:
    """The digest of a body; a digest is its own."""
    if isinstance(body, Digest):
        return body
    text = "\n".join(lines_of(body))
    return Digest(blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest())


def same(one: Body, other: Body) -> bool:
    """Whether two bodies agree, as far as they are known."""
    if isinstance(one, Digest) is isinstance(other, Digest):
        return one == other
    return digest_of(one) == digest_of(other)


def lines_of(body: Body) -> list[str]:
    """The lines of a body."""
    if isinstance(body, Digest):
        return [DIGEST + body.digits]
    lines: list[str] = []
    for title, text in body:
        if "\n" in text:
            lines.append(f"{_head(title)}:")
            lines += [INDENT + line for line in block(text)]
        else:
            lines.append(f"{_head(title)}: {escape(text)}")
    return lines


def body_of(lines: Sequence[str]) -> Body:
    """The body of these lines; raises ValueError(reason, index of the line)."""
    if len(lines) == 1 and lines[0].startswith(DIGEST) and ":" not in lines[0]:
        digits = lines[0].removeprefix(DIGEST)
        if len(digits) != 2 * DIGEST_BYTES or digits.strip("0123456789abcdef"):
            raise ValueError(f"a digest has {2 * DIGEST_BYTES} hexadecimal digits", 0)
        return Digest(digits)
    pairs: list[tuple[str, str]] = []
    at = 0
    while at < len(lines):
        title, colon, rest = lines[at].partition(":")
        end = at + 1
        while end < len(lines) and lines[end].startswith(INDENT):
            end += 1
        try:
            if not colon or title[:1].isspace() or (rest and rest[0] != " "):
                raise ValueError("here belongs 'title:' or 'title: text'")
            if rest and end > at + 1:
                at, end = at + 1, end
                raise ValueError("a text beside its title has no further lines")
            if not rest and end == at + 1:
                raise ValueError("the text under this title is missing")
            text = (
                unescape(rest[1:])
                if rest
                else unblock(
                    [line.removeprefix(INDENT) for line in lines[at + 1 : end]]
                )
            )
            pairs.append((unescape(title), text))
        except ValueError as error:
            raise ValueError(str(error), at) from None
        at = end
    return tuple(pairs)


def _is_pair(part: object) -> bool:
    return (
        isinstance(part, tuple)
        and len(part) == 2
        and isinstance(part[0], str)
        and isinstance(part[1], str)
    )


def _head(title: str) -> str:
    written = escape(title).replace(":", hexadecimal(":"))
    if written[0].isspace() or written[0] == "=":
        return hexadecimal(written[0]) + written[1:]
    return written
