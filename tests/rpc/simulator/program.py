"""Programs of the simulator: what a call asks for, as the callee reads it.

True only here: the words of the programs.  A request names itself by a token that is
used once in the world, so that whoever runs it twice is seen.
"""

from marshal import dumps, loads
from typing import NamedTuple

from everyorder.runtime.rpc.protocol.events import Payload


class Request(NamedTuple):
    """What a callee does: some with what came along, then, after a while, answer.

    `keep` the references that came, or let go of them; store them in the value that is
    created; `forward` them to another worker first, so many times; answer with so many
    references as `answer` says.
    """

    token: int
    wait: float = 0.0
    keep: bool = False
    forward: int = 0
    answer: int = 0
    failed: bool = False
    # Bytes beside the words: large ones travel as frames of their own.
    bulk: int = 0


def written(request: Request) -> list[bytes]:
    """The payload of a request."""
    return [dumps(tuple(request)), *([bytes(request.bulk)] if request.bulk else [])]


def read(payload: Payload) -> Request:
    """The request of a payload."""
    return Request(*loads(bytes(payload[0])))


def answer_to(token: int) -> list[bytes]:
    """The payload of the answer to a request."""
    return [b"answer to %d" % token]
