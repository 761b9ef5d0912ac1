"""Rendezvous: from an address to a worker that is a member of a group.

Workers meet at an address, and one of them, the keeper, keeps the list of members:

    env://               MASTER_ADDR and MASTER_PORT; RANK and WORLD_SIZE as defaults
    tcp://HOST:PORT      on one or several machines; `?rank=1&world_size=2` may follow
    ipc:///folder        on one machine; a private folder of this user, created if
      needed
    file:///folder       the same
    local://NAME         in one process

The keeper listens at that address; the others at a port of the address from which this
machine reaches the keeper, or of all interfaces if the option `host` is set.

With a world size the group is static: it is complete once so many members have joined,
also if some have left again, and calls are not possible before that.  Without a world
size it is open: workers join and leave at any time.  A worker with another size than
the keeper's is not admitted; a worker without a size uses the keeper's.

The keeper is rank 0 of a static group, or the first worker at the address.  The other
workers repeat their request to the keeper until they are members or the time is over.
When the keeper has ended, the others continue with each other, and new workers cannot
join.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from secrets import randbits
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from everyorder.runtime.errors.rpc import (
    AddressUnusable,
    JoinTimeout,
    NotAdmitted,
    RpcError,
    RpcMisuse,
    UnsafeKeys,
)
from everyorder.runtime.rpc.agent.agent import Agent, WorkerSlot
from everyorder.runtime.rpc.agent.driver import LOG
from everyorder.runtime.rpc.agent.options import RpcBackendOptions
from everyorder.runtime.rpc.protocol.events import Rejected
from everyorder.runtime.rpc.protocol.identities import (
    LARGEST_ID,
    NAMES_TAKEN,
    WORKER_NAME,
)
from everyorder.runtime.rpc.protocol.session import Session
from everyorder.runtime.rpc.transport import LocalTransport, Transport
from everyorder.runtime.rpc.transport.addresses import (
    Address,
    address_towards,
    parse_address,
    resolve_host,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everyorder.runtime.rpc.transport.addresses import Keys

# Seconds between two attempts to bind an occupied address, and seconds for all
# attempts: a group that is ending needs less.
_AGAIN = 0.1
_TAKEN = 10.0
# Seconds to wait for the keeper's answer; busy workers need several.
_PATIENCE = 5.0
# Seconds in which a keeper that has given up its group answers workers that come late:
# those of one job start within a few seconds of each other.
_LATE = 10.0
_EVERYWHERE = str(Address("tcp", "*"))
# A process answers within this share of the time after which a worker is lost.
_PULSE = 0.6


Make = Callable[[Session, Transport, RpcBackendOptions, WorkerSlot], Agent]
Wrap = Callable[[Transport], Transport]


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """The place where workers meet: `endpoint` is the keeper's address.

    The other workers listen at `listen`, an address without a fixed port or name.
    `rank` is -1 for any rank, `world_size` None for an open group.
    """

    endpoint: str
    listen: str
    rank: int = -1
    world_size: int | None = None


def parse_init_method(
    init_method: str,
    rank: int = -1,
    world_size: int | None = None,
    environment: "Mapping[str, str]" = os.environ,
) -> Rendezvous:
    """Return the rendezvous of an address.

    `rank` and `world_size` take precedence over the query of the address.

    Raises:
        RpcMisuse: `init_method` is not a valid address.
    """
    try:
        url = urlsplit(init_method)
        query = parse_qs(url.query)
        scheme, port = url.scheme, url.port
        if rank < 0 and "rank" in query:
            rank = int(query["rank"][0])
        if not world_size and "world_size" in query:
            world_size = int(query["world_size"][0])
    except ValueError as error:
        raise _no_address(init_method, str(error)) from None
    if scheme == "env":
        return _of_environment(init_method, rank, world_size, environment)
    size = world_size or None
    if scheme == "tcp":
        if not url.hostname or port is None:
            raise _no_address(init_method, "it lacks a host or a port")
        host = "127.0.0.1" if url.hostname == "localhost" else url.hostname
        there = Address("tcp", host, port)
        others = str(Address("tcp", host)) if there.is_loopback() else _EVERYWHERE
        return Rendezvous(str(there), others, rank, size)
    if scheme in ("ipc", "file") and not url.netloc and len(url.path) > 1:
        folder = url.path.rstrip("/")
        return Rendezvous(f"ipc://{folder}/keeper", f"ipc://{folder}/", rank, size)
    if scheme == "local" and url.netloc:
        return Rendezvous(f"local://{url.netloc}", "local://", rank, size)
    raise _no_address(init_method, "unknown scheme, or missing place")


def _of_environment(
    init_method: str,
    rank: int,
    world_size: int | None,
    environment: "Mapping[str, str]",
) -> Rendezvous:
    missing = [
        each for each in ("MASTER_ADDR", "MASTER_PORT") if not environment.get(each)
    ]
    if missing:
        are = "are" if missing[1:] else "is"
        lacks = f"{' and '.join(missing)} {are} not set in the environment"
        raise _no_address(init_method, lacks)
    try:
        if rank < 0:
            rank = int(environment.get("RANK", -1))
        if not world_size:
            world_size = int(environment.get("WORLD_SIZE", 0)) or None
    except ValueError as error:
        raise _no_address(init_method, f"RANK or WORLD_SIZE: {error}") from None
    host, port = environment["MASTER_ADDR"], environment["MASTER_PORT"]
    return parse_init_method(f"tcp://{host}:{port}", rank, world_size)


def _no_address(init_method: str, why: str) -> RpcMisuse:
    return RpcMisuse(
        call="init_rpc",
        found=f"the address {init_method!r}: {why}",
        wanted=(
            '"tcp://HOST:PORT", "ipc:///folder", "file:///folder", "local://NAME", or '
            '"env://" with MASTER_ADDR and MASTER_PORT'
        ),
    )


def check_name(name: object) -> str:
    """Return the name of a worker, checked.

    Raises:
        RpcMisuse: the name is invalid.
    """
    if not isinstance(name, str) or WORKER_NAME.fullmatch(name) is None:
        raise RpcMisuse(
            call="init_rpc",
            found=f"the name {name!r}",
            wanted=NAMES_TAKEN,
        )
    return name


def check_rank(rank: object, world_size: object) -> tuple[int, int | None]:
    """Return the rank (-1 for any) and the size of the group (None if it is open).

    Raises:
        RpcMisuse: the rank or the size is invalid.
    """
    for value, what in ((rank, "rank"), (world_size, "world_size")):
        if value is not None and (
            not isinstance(value, int) or isinstance(value, bool)
        ):
            raise RpcMisuse(
                call="init_rpc", found=f"{what}={value!r}", wanted="a whole number"
            )
    number = -1 if rank is None else int(rank)  # type: ignore[call-overload]  # checked
    size = int(world_size) if world_size else None  # type: ignore[call-overload]  # checked
    if number > LARGEST_ID:
        raise RpcMisuse(
            call="init_rpc",
            found=f"the rank {number}",
            wanted=f"RPC worker id out of bound of int16_t: at most {LARGEST_ID}",
        )
    if size is not None and (size < 0 or number >= size):
        raise RpcMisuse(
            call="init_rpc",
            found=f"rank {number} of {size} workers",
            wanted="a rank below the size of the group",
        )
    return number, size


def join(
    name: str,
    where: Rendezvous,
    options: RpcBackendOptions,
    slot: WorkerSlot,
    over: Callable[[], bool] = lambda: False,
    make: Make = Agent,
    wrap: Wrap = lambda transport: transport,
) -> Agent:
    """Return a worker that is a member and in its slot; wait for a static group.

    The function returns when a static group is complete.  `over` returns True when the
    worker is not needed any more; `make` builds the agent, `wrap` may replace its
    transport.

    Raises:
        JoinTimeout: the time is over, or `over`; the error names the missing workers.
        NotAdmitted: another member has its name or its rank, or the keeper refuses it.
        AddressUnusable, UnsafeKeys: the worker cannot listen at its address.
    """
    began = monotonic()
    until = began + options.join_timeout
    while True:
        keeps, bare = _listening(where, options, min(until, began + _TAKEN))
        transport = wrap(bare)
        agent = make(_session(name, transport, options), transport, options, slot)
        slot.agent = agent
        try:
            agent.start()
            if _become_member(agent, where, keeps, until, over):
                return agent
        except BaseException:
            slot.agent = None
            agent.close()
            raise
        # The keeper may have ended: this worker may become the keeper in the next
        # round.
        slot.agent = None
        agent.close()


def _listening(
    where: Rendezvous, options: RpcBackendOptions, until: float
) -> tuple[bool, Transport]:
    """Return True if this worker is the keeper, and its transport.

    Raises:
        AddressUnusable: rank 0 needs the address, and it was occupied all the time.
        UnsafeKeys: the worker cannot listen at its address.
    """
    while where.rank <= 0:
        try:
            return True, _transport(where.endpoint, options)
        except AddressUnusable:
            # The address has a keeper, or belongs to another machine.
            if where.rank < 0:
                break
            # The previous group at this address may be about to end.
            if monotonic() > until:
                raise
            Event().wait(_AGAIN)
    try:
        return False, _transport(_listen_address(where, options), options)
    except UnsafeKeys as error:
        if error.code != "KeysNeeded":
            raise
        # Report the address of the user, not the derived one.
        raise UnsafeKeys(code="KeysNeeded", address=where.endpoint) from None


def _listen_address(where: Rendezvous, options: RpcBackendOptions) -> str:
    """Return the address at which a worker listens that is not the keeper.

    Not all interfaces: only the one by which this machine reaches the keeper, unless
    that is unknown, or `host` names another one.
    """
    if where.listen != _EVERYWHERE or options.keys is None:
        return where.listen
    own = ""
    if not options.host:
        # A name may be unknown as long as the keeper is not there.
        with suppress(AddressUnusable):
            own = address_towards(resolve_host(parse_address(where.endpoint)))
    if not own or "%" in own:
        LOG.info("a worker for %s listens on all interfaces", where.endpoint)
        return where.listen
    return str(Address("tcp", own))


def _transport(address: str, options: RpcBackendOptions) -> Transport:
    """Return a transport that listens at an address.

    Raises:
        RpcMisuse: the address needs sockets, and the extra `rpc` is not installed.
        AddressUnusable, UnsafeKeys: the transport cannot listen there.
    """
    if address.startswith("local://"):
        return LocalTransport(address.removeprefix("local://"))
    try:
        from everyorder.runtime.rpc.transport.sockets import SocketTransport
    except ImportError as error:
        package = (error.name or "zmq").partition(".")[0]
        raise RpcMisuse(
            code="ExtraMissing", call="init_rpc", package=package
        ) from error
    keys = _keys(address, options)
    # Sooner than a worker is given up.
    pulse = options.settings.dead * _PULSE
    return SocketTransport(address, keys, advertise=options.host, pulse=pulse)


def _keys(address: str, options: RpcBackendOptions) -> "Keys | None":
    """Return the keys of a worker that listens at an address; None without keys.

    Raises:
        UnsafeKeys: the keys cannot be read.
    """
    from everyorder.runtime.rpc.transport.addresses import Keys

    if options.keys is not None:
        return Keys.load(options.keys)
    if address.startswith("tcp://") and parse_address(address).is_loopback():
        # Other users of this machine must not send code.
        return Keys.of_this_user()
    return None


def _keeper_endpoint(where: Rendezvous, options: RpcBackendOptions) -> str:
    """Return the endpoint of the keeper, with its key if there are keys."""
    if where.endpoint.startswith("local://"):
        return where.endpoint
    keys = _keys(where.listen, options)
    return where.endpoint if keys is None else f"{where.endpoint}#{keys.keeper}"


def _become_member(
    agent: Agent,
    where: Rendezvous,
    keeps: bool,
    until: float,
    over: Callable[[], bool],
) -> bool:
    """Join the group and, if it is static, wait until it is complete.

    Return False if there was no answer, and this worker may become the keeper.
    """
    rank = where.rank if where.rank >= 0 else None
    session = agent.session
    keeper = where.endpoint if keeps else _keeper_endpoint(where, agent.options)
    size = where.world_size
    if keeps:
        agent.do(lambda _: session.keep(world_size=size, id=rank or 0), "init_rpc")
    else:
        agent.do(
            lambda now: session.join(keeper, id=rank, now=now, world_size=size),
            "init_rpc",
        )
    ended = False

    def is_over() -> bool:
        nonlocal ended
        ended = bool(agent.ended) or over() or keeper in agent.refused
        return ended or agent.rejected is not None

    def is_admitted() -> bool:
        return agent.admitted is not None or is_over()

    def is_whole() -> bool:
        if agent.admitted is None:
            return is_over()
        # Not the number of present members: one may have left already.
        return not agent.is_static or agent.completed or is_over()

    # Without a rank the keeper is not fixed: if it does not answer, another worker may
    # take its place.  With a rank, only worker 0 is the keeper, and others wait for it.
    if where.rank < 0:
        patience = min(until - monotonic(), _PATIENCE)
        answered = agent.wait_until(is_admitted, max(patience, 0.0))
        if not answered and monotonic() < until:
            return False
    whole = agent.wait_until(is_whole, max(until - monotonic(), 0.0))
    if agent.rejected is not None:
        # A worker that comes now would wait for a keeper until its time is over.
        late = min(until - monotonic(), _LATE)
        agent.wait_until(lambda: not session.uninformed() or over(), max(late, 0.0))
        raise _rejected(agent, where, agent.rejected)
    if whole and not ended:
        return True
    if keeper in agent.refused:
        why = agent.refused[keeper] or "the two do not trust each other's keys"
        if agent.options.keys is None:
            why += ", and this one has no folder of keys"
        raise NotAdmitted(name=agent.name, address=where.endpoint, why=why)
    timeout = agent.options.join_timeout
    # Joining may have ended early, by `over`.
    elapsed = round(monotonic() - until + timeout, 1)
    raise JoinTimeout(
        name=agent.name,
        address=where.endpoint,
        seconds=min(elapsed, timeout),
        missing=_missing(agent),
    )


def _rejected(agent: Agent, where: Rendezvous, event: Rejected) -> RpcError:
    name = agent.name
    own = f"RPC worker name {name} ", f"RPC worker id {where.rank} "
    if event.is_taken and (agent.admitted or not event.why.startswith(own)):
        # Two others have one name: this worker is told, as it would wait for both.
        return NotAdmitted(code="OthersNotUnique", name=name, why=event.why)
    if event.is_taken:
        return NotAdmitted(code="NotUnique", name=name, why=event.why)
    return NotAdmitted(name=name, address=where.endpoint, why=event.why)


def _missing(agent: Agent) -> tuple[str, ...]:
    if agent.admitted is None:
        return ("an answer of the keeper of the address", *agent.complaints)
    there = {node.id for node in agent.nodes()}
    size = agent.admitted.world_size or 0
    return tuple(f"the worker of rank {n}" for n in range(size) if n not in there)


def _session(name: str, transport: Transport, options: RpcBackendOptions) -> Session:
    return Session(
        name,
        incarnation=randbits(63),
        endpoint=transport.endpoint,
        key=transport.key,
        settings=options.settings,
        now=monotonic(),
    )
