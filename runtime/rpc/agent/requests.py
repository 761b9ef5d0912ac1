"""Requests: what other workers ask of this one, and how it does that.

    decoded     references that came with it become this worker's
    run         on a request thread, with this worker as the current one; it may be the
                one that received it
    answered    by the thread on which the result is there: the one that ran it, or
                whichever completes the future of a function that is marked so

Rules:
- what was asked for is answered once, whatever happens: with a value, or an error that
  can be raised where it was asked for;
- no thread waits for a future: the value of a reference that is still being made, and
  the future of a marked function, bring the answer along when they are complete;
- a value that `remote` makes stays here; an error of making it is its value, and comes
  out where the value is asked for.  A short one that never changes goes along with the
  answer to its making, for who asks for it before that came;
- what the caller does not wait for any more is not begun; what is begun is finished.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from opcode import opmap
from types import FrameType
from typing import Any

from runtime.errors.future import described
from runtime.errors.rpc import ReferenceDead, RpcError, RpcMisuse
from runtime.futures import Future
from runtime.rpc.agent.calls import Caller
from runtime.rpc.agent.driver import Parts
from runtime.rpc.agent.references import is_plain, is_short
from runtime.rpc.functions import MARK
from runtime.rpc.identities import Fork, Node, RRefId
from runtime.rpc.session.events import Buffer, Called, Cancelled
from runtime.rpc.values import Packed
from runtime.rpc.values.remote_errors import pack_error

# The answer of who made a value that does not go along.
NOT_ALONG = Packed([b""], [])

# Generators and coroutines of each kind, and at what they stand while they pause.
_PAUSES = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_YIELDS = opmap["YIELD_VALUE"]


class Job:
    """A request that came in, until it is answered."""

    __slots__ = ("agent", "called", "cancelled", "value")

    def __init__(
        self, agent: "Server", called: Called, value: Future[Any] | None
    ) -> None:
        self.agent = agent
        self.called = called
        # The value that it makes, or fetches; None for a plain call.
        self.value = value
        self.cancelled = False


def serve(job: Job) -> None:
    """Do what was asked, and answer now or when it is there."""
    called = job.called
    if job.agent.ended:
        return
    if called.target is not None:
        fetch(job)
    elif job.agent.lending.is_asked(called.payload):
        said = job.agent.lending.answer(called.peer, called.payload)
        job.agent.reply(job, (said,), (), failed=False)
    elif job.cancelled and called.creates is None:
        # The session drops it, and knows that this worker is done with it.
        job.agent.discard(called.peer, called.payload, called.carries)
        job.agent.reply(job, (b"",), (), failed=True)
    else:
        _run(job)
    job.agent.lending.give_back()


def fetch(job: Job) -> None:
    """Answer with a value that is kept here, as soon as it is made."""
    rref = job.called.target
    assert rref is not None, "it is what is fetched"
    if job.value is None:
        dead = ReferenceDead(
            code="ReferenceDead",
            call="to_here",
            reference=str(rref),
            reason="its owner has no such value",
        )
        _answer_error(job, dead)
    else:
        _answer_later(job, job.value)


def _run(job: Job) -> None:
    agent, called = job.agent, job.called
    request = None
    try:
        payload = agent.whole(called.peer, called.payload, called.carries)
        request = agent.codec.unpack_request(payload, called.carries)
        del payload
        result = request.run()
        if getattr(request.function, MARK, None) is not None:
            if not isinstance(result, Future):
                raise RpcMisuse(
                    code="NotAFuture", function=request.name, found=described(result)
                )
            # What the request keeps alive ends here, not with the future.
            request = None
            if job.value is not None:
                result._forward_to(job.value)
            _answer_later(job, result)
            error = result.error()
            if error is not None:
                # What ran while it was set has ended.
                _free_frames(error)
            return
        request = None
    except BaseException as error:
        # An error keeps this frame, which may not keep what the request does.
        request = None
        # An end of the process is none that somebody else may ask for.
        _settle_error(job, _without_this_frame(error))
    else:
        _settle_value(job, result)


def _without_this_frame(error: BaseException) -> BaseException:
    if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
        error.__traceback__ = error.__traceback__.tb_next
    return error


def _answer_with(job: Job, told: Future[Any]) -> None:
    """Answer a request, as a future is complete."""
    error = told.error()
    if job.called.creates is not None:
        _answer_created(job, told)
    elif error is None:
        _answer(job, told.value())
    else:
        _answer_error(job, error)


def _answer_later(job: Job, future: Future[Any]) -> None:
    future.add_done_callback(partial(_answer_with, job))


def waits_to_fetch(job: Job) -> bool:
    """Whether what is fetched is not made yet: then it is answered by who makes it."""
    return job.value is not None and job.value._register_unless_complete(
        partial(_answer_with, job)
    )


def _settle_value(job: Job, result: object) -> None:
    if job.value is not None:
        if isinstance(result, Future):
            # As from any function that is not marked: a future does not travel.
            try:
                result.__reduce_ex__(5)
            except Exception as error:
                _settle_error(job, error)
                return
        job.value.set_result(result)
        _answer_created(job, job.value)
    else:
        _answer(job, result)


def _settle_error(job: Job, error: BaseException) -> None:
    if job.value is not None:
        _free_frames(error)
        job.value.set_error_if_needed(error)
        _answer_created(job, job.value)
    else:
        _answer_error(job, error)


def _answer_created(job: Job, value: Future[Any]) -> None:
    """Say that a value is made.

    It stays here, and so does its error; one that never changes goes along, for who
    asks for it at once.
    """
    packed = NOT_ALONG
    if is_plain(value) and is_short(value.value()):
        # What takes registered functions only has no form for some of them.
        with suppress(RpcError):
            packed = job.agent.codec.pack_result(value.value())
    job.agent.reply(job, *packed, failed=False)


def _answer(job: Job, result: object) -> None:
    agent = job.agent
    try:
        payload, carries = agent.codec.pack_result(result)
    except BaseException as error:
        _answer_error(job, error)
        return
    agent.reply(job, payload, carries, failed=False)


def _answer_error(job: Job, error: BaseException) -> None:
    agent = job.agent
    payload, carries = pack_error(error, agent.node.info)
    _free_frames(error)
    agent.reply(job, payload, carries, failed=True)


def _free_frames(error: BaseException) -> None:
    """Let go of what the frames have that an error passed; their lines stay.

    The error may be the value of a reference that these frames have: it would be kept
    until somebody collects garbage.
    """
    for each in _chain(error):
        trace = each.__traceback__
        frame = None if trace is None else trace.tb_frame.f_back
        while trace is not None:
            _free(trace.tb_frame)
            trace = trace.tb_next
        while frame is not None and _free(frame):
            frame = frame.f_back


def _free(frame: FrameType) -> bool:
    """Let go of what a frame has; False where it runs, or will go on."""
    code = frame.f_code
    if code.co_flags & _PAUSES and code.co_code[frame.f_lasti] == _YIELDS:
        # To clear a generator is to end it, and this one caught the error.
        return False
    try:
        frame.clear()
    except RuntimeError:
        return False
    return True


def _chain(error: BaseException) -> list[BaseException]:
    """An error, its causes, and what they were raised beside."""
    found: dict[int, BaseException] = {}
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is not None and id(each) not in found:
            found[id(each)] = each
            left += (each.__cause__, each.__context__)
    return [*found.values()]


class Server(Caller):
    """A worker as it does what others ask of it."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._jobs: dict[tuple[Node, int], Job] = {}
        self.handlers |= {Called: self._called, Cancelled: self._cancelled}

    def _called(self, event: Called) -> None:
        value: Future[Any] | None = None
        if event.creates is not None:
            value = self._owned.setdefault(event.creates, Future())
        elif event.target is not None:
            value = self._owned.get(event.target)
        job = Job(self, event, value)
        self._jobs[event.peer, event.call] = job
        self._begin(job)

    def _begin(self, job: Job) -> None:
        value = job.value
        if job.called.target is not None and value is not None:
            # No other thread is woken for what is there, or will come.
            if is_plain(value) and is_short(value.value()):
                fetch(job)
                return
            if waits_to_fetch(job):
                return
        if not self.stays_behind(serve, job):
            self.pool.put(serve, job)

    def _cancelled(self, event: Cancelled) -> None:
        job = self._jobs.get((event.peer, event.call))
        if job is not None:
            job.cancelled = True

    def reply(
        self,
        job: Job,
        payload: Sequence[Buffer],
        carries: Sequence[Fork | RRefId],
        failed: bool,
    ) -> None:
        """Send the answer to a request; the first one counts."""
        called = job.called
        if self._jobs.pop((called.peer, called.call), None) is None or self.ended:
            return
        payload = self.lending.outgoing(called.peer, payload)

        def act(now: float) -> None:
            self.session.reply(
                called.peer,
                called.call,
                payload,
                carries=carries,
                failed=failed,
                now=now,
            )

        self.do(act, "reply")
