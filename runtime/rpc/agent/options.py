"""Options of workers, and the backends that create workers from them.

    RpcBackendOptions    the options of a worker, with their defaults
    register_backend     a name, a factory of options, and a factory of workers
    timeout_seconds      the meaning of a timeout, the same for all calls

Options are checked on construction, so that a mistake is reported there, and not when a
worker starts.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from everyorder.runtime.base.registry import Registry
from everyorder.runtime.errors.registration import AlreadyRegistered
from everyorder.runtime.errors.rpc import RpcMisuse
from everyorder.runtime.rpc.protocol.events import Settings as Settings

# The defaults of `torch.distributed.rpc`.
DEFAULT_RPC_TIMEOUT_SEC = 60.0
UNSET_RPC_TIMEOUT = -1.0
DEFAULT_SHUTDOWN_TIMEOUT = 0.0
DEFAULT_NUM_WORKER_THREADS = 16
DEFAULT_INIT_METHOD = "env://"
# Calls without an answer before a caller waits; each takes about a kilobyte.
DEFAULT_MAX_CALLS_IN_FLIGHT = 100_000
# In seconds; the other workers may have to be started by hand.
DEFAULT_JOIN_TIMEOUT = 60.0
# A year, in seconds: a longer timeout means no deadline.
_LONGEST = 86_400.0 * 365


def timeout_seconds(timeout: object, default: float, call: str) -> float | None:
    """Return the seconds of a timeout, rounded up to milliseconds; None for ever.

    -1 means the default, 0 for ever.

    Raises:
        RpcMisuse: `timeout` is not a number of seconds, or is negative.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise _no_timeout(call, f"the timeout {timeout!r}")
    if timeout == UNSET_RPC_TIMEOUT:
        timeout = default
    if not timeout >= 0:
        raise _no_timeout(call, f"a timeout of {timeout}")
    if not timeout or timeout > _LONGEST:
        return None
    return ceil(timeout * 1000 - 1e-6) / 1000


def _no_timeout(call: str, description: str) -> RpcMisuse:
    return RpcMisuse(
        call=call,
        found=description,
        wanted=(
            "a number of seconds; RPC Timeout must be non-negative, 0 is for ever, "
            "and -1 means the default"
        ),
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_seconds(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and value >= 0  # type: ignore[operator]  # a number


_COUNT = "a whole number: {name} must be positive, got {value!r}"
# Option, predicate of valid values, the value in the error, the expected value.
_CHECKS: tuple[tuple[str, Callable[[object], bool], str, str], ...] = (
    (
        "init_method",
        _is_text,
        "the address {value!r}",
        'a text, such as "tcp://HOST:PORT"',
    ),
    (
        "host",
        _is_text,
        "the host {value!r}",
        "a host name or an address of this machine",
    ),
    (
        "keys",
        lambda value: isinstance(value, str | Path | None),
        "keys={value!r}",
        "a folder of keys",
    ),
    (
        "join_timeout",
        _is_seconds,
        "join_timeout={value!r}",
        "a number of seconds, 0 or more",
    ),
    ("num_worker_threads", _is_count, "{name}={value!r}", _COUNT),
    ("max_calls_in_flight", _is_count, "{name}={value!r}", _COUNT),
    (
        "max_payload",
        lambda value: value is None or _is_count(value),
        "{name}={value!r}",
        _COUNT,
    ),
)


@dataclass(slots=True)
class RpcBackendOptions:
    """The options of one worker.

    `rpc_timeout` is in seconds, for calls without a timeout; 0 means for ever.
    `init_method` is the address where workers meet: "tcp://HOST:PORT", "ipc:///folder",
    "file:///folder", or "env://" for MASTER_ADDR and MASTER_PORT.  `keys` is a folder
    of keys; without keys, only workers of this machine are admitted.  `host` is the
    name or address by which other machines reach this one, if it cannot be detected.
    With `registered_only` this worker runs and calls registered functions only, and
    does not decode data that could run code, so the other workers need the option too.
    `max_calls_in_flight` limits the calls without an answer before a caller waits,
    `max_payload` the size of a request or answer, in bytes.  With `shared_memory`,
    large buffers between processes of one machine are stored in memory that both
    processes map. `join_timeout` is in seconds; `session` has the times after which a
    silent worker is lost.

    Raises:
        RpcMisuse: a value is invalid.
    """

    rpc_timeout: float = DEFAULT_RPC_TIMEOUT_SEC
    init_method: str = DEFAULT_INIT_METHOD
    num_worker_threads: int = DEFAULT_NUM_WORKER_THREADS
    keys: str | Path | None = None
    host: str = ""
    registered_only: bool = False
    max_calls_in_flight: int = DEFAULT_MAX_CALLS_IN_FLIGHT
    max_payload: int | None = None
    shared_memory: bool = True
    join_timeout: float = DEFAULT_JOIN_TIMEOUT
    session: Settings = Settings()  # noqa: RUF009  # Settings is frozen
    # Accepted for compatibility.  A received tensor is on the same device as the sent
    # one, so a map may only map each device to itself.
    device_maps: Mapping[str, Mapping[object, object]] = field(default_factory=dict)
    devices: Iterable[object] = ()

    @property
    def settings(self) -> Settings:
        """Return `session` with `max_payload` applied."""
        if self.max_payload is None:
            return self.session
        return replace(self.session, largest=self.max_payload)

    def __post_init__(self) -> None:
        call = type(self).__name__
        timeout_seconds(self.rpc_timeout, 0.0, call)
        for worker, devices in self.device_maps.items():
            for own, other in devices.items():
                if own != other:
                    raise RpcMisuse(
                        call=call,
                        found=f"a map from {own!r} to {other!r} for `{worker}`",
                        wanted="maps from each device to itself: `to` moves a tensor",
                    )
        if self.rpc_timeout < 0:
            raise _no_timeout(call, f"a timeout of {self.rpc_timeout}")
        for name, is_valid, description, expected in _CHECKS:
            value = getattr(self, name)
            if not is_valid(value):
                raise RpcMisuse(
                    call=call,
                    found=description.format(name=name, value=value),
                    wanted=expected.format(name=name, value=value),
                )


class Backend(NamedTuple):
    """The two functions of a backend."""

    construct_rpc_backend_options_handler: Callable[..., RpcBackendOptions]
    init_backend_handler: Callable[..., Any]


class BackendType(Enum):
    """The enumeration of backends; a registration replaces it with a larger one."""

    @property
    def handlers(self) -> Backend:
        """Return the functions registered under this name."""
        return BACKENDS.rows[self.name]

    def __repr__(self) -> str:
        return f"BackendType.{self.name}"


BACKENDS: Registry[str, Backend] = Registry("backends", order=str, permanent=True)


def backend_type() -> type[BackendType]:
    """Return the enumeration of all registered backends, in the order of names."""
    return _enumeration(tuple(BACKENDS.rows))


@cache
def _enumeration(names: tuple[str, ...]) -> type[BackendType]:
    members = {name: name for name in names}
    return BackendType("BackendType", members, module=__name__)  # type: ignore[return-value,call-arg]  # the functional form of enumerations


def backend_registered(backend_name: str) -> bool:
    """Return True if a backend of that name is registered."""
    return backend_name in BACKENDS.rows


def register_backend(
    backend_name: str,
    construct_rpc_backend_options_handler: Callable[..., RpcBackendOptions],
    init_backend_handler: Callable[..., Any],
) -> BackendType:
    """Register a backend and return its member of the new `BackendType`.

    Raises:
        RpcMisuse: a backend of that name is registered already.
    """
    backend = Backend(construct_rpc_backend_options_handler, init_backend_handler)
    try:
        BACKENDS.register(backend_name, backend, stacklevel=2)
    except AlreadyRegistered:
        raise RpcMisuse(
            call="register_backend",
            found=f"a name in use: RPC backend {backend_name}: already registered",
            wanted="a different name for each backend",
        ) from None
    return backend_type()[backend_name]


def construct_rpc_backend_options(
    backend: BackendType,
    rpc_timeout: float = DEFAULT_RPC_TIMEOUT_SEC,
    init_method: str = DEFAULT_INIT_METHOD,
    **kwargs: Any,
) -> RpcBackendOptions:
    """Return options of a backend; `kwargs` are passed to the backend."""
    return backend.handlers.construct_rpc_backend_options_handler(
        rpc_timeout=rpc_timeout, init_method=init_method, **kwargs
    )


def init_backend(backend: BackendType, *args: Any, **kwargs: Any) -> Any:
    """Start a worker of a backend; the arguments are passed to the backend."""
    return backend.handlers.init_backend_handler(*args, **kwargs)


def choose_backend(
    backend: object, options: object, default: str
) -> tuple[BackendType, RpcBackendOptions]:
    """Return the backend and options of `init_rpc`; derive a missing one.

    Raises:
        RpcMisuse: an argument has the wrong type, or no backend has such options.
    """
    if backend is not None and not isinstance(backend, BackendType):
        raise RpcMisuse(
            call="init_rpc",
            found=f"the backend {backend!r}",
            wanted="Argument backend must be a member of BackendType",
        )
    if options is not None and not isinstance(options, RpcBackendOptions):
        raise RpcMisuse(
            call="init_rpc",
            found=f"options of type {type(options).__name__}",
            wanted=(
                "Argument rpc_backend_options must be an instance of RpcBackendOptions"
            ),
        )
    if backend is None and options is None:
        backend = backend_type()[default]
    if backend is None:
        # Several may have options of one class: the default one is preferred, then the
        # first by name.
        for each in (backend_type()[default], *backend_type()):
            if type(construct_rpc_backend_options(each)) is type(options):
                backend = each
                break
        else:
            raise RpcMisuse(
                call="init_rpc",
                found=f"no backend: Could not infer backend for options {options}",
                wanted="options of a backend that is registered, or its name",
            )
    assert isinstance(backend, BackendType), "an argument, or derived"
    if options is None:
        options = construct_rpc_backend_options(backend)
    assert isinstance(options, RpcBackendOptions), "an argument, or derived"
    return backend, options
