"""Addresses as people write them, and where a worker may listen without keys."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from everyorder.runtime.errors.rpc import AddressUnusable, BlockGone, UnsafeKeys
from everyorder.runtime.rpc.transport import LocalTransport
from everyorder.runtime.rpc.transport.addresses import Address, Keys, parse_address
from everyorder.runtime.rpc.transport.sockets import SocketTransport
from tests.coded import code, coded
from tests.rpc.transport.inbox import Inbox, folder

KeysNeeded = coded(UnsafeKeys, "KeysNeeded")

KEY = "0123456789abcdef" * 4
KEYS = Keys.drawn()

WRITTEN = {
    "tcp://10.1.2.3:80": Address("tcp", "10.1.2.3", 80),
    "tcp://*:0": Address("tcp", "*", 0),
    "tcp://[::1]:5": Address("tcp", "::1", 5),
    "tcp://a-host.example:65535": Address("tcp", "a-host.example", 65535),
    f"tcp://localhost:1#{KEY}": Address("tcp", "localhost", 1, key=KEY),
    "ipc:///run/user/w": Address("ipc", path="/run/user/w"),
    "ipc:///run/user/": Address("ipc", path="/run/user/"),
    f"ipc:///run/w#{KEY}": Address("ipc", path="/run/w", key=KEY),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_an_address_is_read_and_written(text: str) -> None:
    assert parse_address(text) == WRITTEN[text]
    assert str(WRITTEN[text]) == text


NONE = {
    "": "an address begins with `tcp://` or `ipc://`",
    "host:80": "an address begins with `tcp://` or `ipc://`",
    "udp://host:80": "an address begins with `tcp://` or `ipc://`",
    "inproc://wake": "an address begins with `tcp://` or `ipc://`",
    "ipc://relative": "the path of a socket begins with `/`",
    "ipc://@abstract": "the path of a socket begins with `/`",
    "ipc://*": "the path of a socket begins with `/`",
    "ipc:///a\0b": "the path of a socket begins with `/`",
    "tcp://host:1#short": "a key is 64 hexadecimal digits",
    f"tcp://host:1#{KEY.upper()}": "a key is 64 hexadecimal digits",
}
for _text in (
    *("tcp://", "tcp://host", "tcp://host:", "tcp://:80", "tcp://host:65536"),
    *("tcp://host:-1", "tcp://::1:80", "tcp://host:x", "tcp://host:1:2"),
    *(
        "tcp://host:\u0663",
        "tcp://[::1:80",
        "tcp://::1]:80",
        "tcp://[h:80",
        "tcp://h]:1",
    ),
):
    NONE[_text] = "it is written `tcp://HOST:PORT`, with a port below 65536"


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(AddressUnusable) as raised:
        parse_address(text)
    assert (raised.value.address, raised.value.why) == (text, NONE[text])
    with pytest.raises(AddressUnusable):
        SocketTransport(text, KEYS)


@pytest.fixture
def home() -> Iterator[Path]:
    with folder() as where:
        yield Path(where)


def reached(endpoint: str, transport: SocketTransport, keys: Keys | None) -> None:
    """Check that what is sent to an endpoint comes in at the transport."""
    inbox = Inbox()
    inbox.start(transport)
    where = "ipc" if endpoint.startswith("ipc") else "tcp"
    with folder() as own:
        address = f"ipc://{own}/" if where == "ipc" else "tcp://127.0.0.1:0"
        with closing(SocketTransport(address, keys, unprotected=True)) as other:
            other.send(endpoint, [b"hello"])
            inbox.until_packets(1)
    assert inbox.packets == [[b"hello"]]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.9"])
def test_port_0_draws_one(host: str) -> None:
    with closing(SocketTransport(f"tcp://{host}:0", KEYS)) as transport:
        address = parse_address(transport.endpoint)
        assert (address.host, address.key) == (
            host,
            KEYS.public == transport.key and KEYS.public,
        )
        assert address.port > 0
        reached(transport.endpoint, transport, KEYS)


def _has_version6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_version6 = pytest.mark.skipif(not _has_version6(), reason="there is no IPv6")


@needs_version6
def test_version_6() -> None:
    with closing(SocketTransport("tcp://[::1]:0", KEYS)) as transport:
        assert transport.endpoint.startswith("tcp://[::1]:")
        reached(transport.endpoint, transport, KEYS)


@pytest.mark.parametrize(
    "host", ["*", "0.0.0.0", pytest.param("[::]", marks=needs_version6)]
)
def test_everywhere(host: str) -> None:
    """Others are told an address by which they reach it, or the one that was given."""
    with closing(SocketTransport(f"tcp://{host}:0", KEYS)) as transport:
        address = parse_address(transport.endpoint)
        assert address.host not in ("*", "0.0.0.0", "::", "")
        reached(f"tcp://127.0.0.1:{address.port}", transport, KEYS)
    with closing(
        SocketTransport(f"tcp://{host}:0", KEYS, advertise="me.example")
    ) as transport:
        assert transport.endpoint.startswith("tcp://me.example:")


def test_an_address_in_use() -> None:
    with closing(SocketTransport("tcp://127.0.0.1:0", KEYS)) as first:
        address = first.endpoint.partition("#")[0]
        with pytest.raises(AddressUnusable) as raised:
            SocketTransport(address, KEYS)
        assert raised.value.address == address
        assert raised.value.why == "another worker or program listens there"
        assert isinstance(raised.value, OSError)
        reached(first.endpoint, first, KEYS)
    # It is free at once.
    SocketTransport(address, KEYS).close()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("tcp://192.0.2.1:0", "it is not an address of this machine"),
        ("tcp://no-such-host.invalid:0", "there is no host of this name"),
        (f"tcp://{'x' * 70}.invalid:0", "there is no host of this name"),
    ],
)
def test_not_of_this_machine(address: str, why: str) -> None:
    with pytest.raises(AddressUnusable) as raised:
        SocketTransport(address, KEYS)
    assert (raised.value.address, raised.value.why) == (address, why)


@pytest.mark.parametrize("unprotected", [False, True])
@pytest.mark.parametrize("host", ["*", "0.0.0.0", "[::]", "192.0.2.1"])
def test_without_keys_only_at_loopback(host: str, unprotected: bool) -> None:
    with pytest.raises(KeysNeeded) as raised:
        SocketTransport(f"tcp://{host}:0", unprotected=unprotected)
    assert raised.value.address == f"tcp://{host}:0"


def test_without_keys_at_loopback_it_must_be_said() -> None:
    """Every user of a machine reaches its loopback address."""
    with pytest.raises(KeysNeeded) as raised:
        SocketTransport("tcp://127.0.0.1:0")
    assert raised.value.address == "tcp://127.0.0.1:0"
    with closing(SocketTransport("tcp://127.0.0.1:0", unprotected=True)) as transport:
        assert transport.key == ""
        assert "#" not in transport.endpoint
        reached(transport.endpoint, transport, None)


def test_sockets_in_a_folder(home: Path) -> None:
    with closing(SocketTransport(f"ipc://{home}/own/")) as transport:
        assert (home / "own").stat().st_mode & 0o777 == 0o700
        assert Path(parse_address(transport.endpoint).path).parent == home / "own"
        reached(transport.endpoint, transport, None)
    # A folder that is there is enough, and two names are never the same.
    with (
        closing(SocketTransport(f"ipc://{home}/own")) as one,
        closing(SocketTransport(f"ipc://{home}/own")) as two,
        closing(SocketTransport(f"ipc://{home}/own/keeper", KEYS)) as three,
    ):
        assert one.endpoint != two.endpoint
        assert three.endpoint == f"ipc://{home}/own/keeper#{KEYS.public}"
        reached(three.endpoint, three, KEYS)
    assert [*(home / "own").iterdir()] == []


def test_a_socket_in_use_is_not_taken_over(home: Path) -> None:
    with closing(SocketTransport(f"ipc://{home}/w")) as first:
        with pytest.raises(AddressUnusable) as raised:
            SocketTransport(f"ipc://{home}/w")
        assert raised.value.why == "another worker or program listens there"
        reached(first.endpoint, first, None)


def test_a_socket_that_the_dead_left_is_taken_over(home: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{home}/w")
        dead.listen()
    assert (home / "w").is_socket()
    with closing(SocketTransport(f"ipc://{home}/w")) as transport:
        reached(transport.endpoint, transport, None)


def test_the_longest_path(home: Path) -> None:
    name = "x" * (103 - len(f"{home}/"))
    with closing(SocketTransport(f"ipc://{home}/{name}")) as transport:
        reached(transport.endpoint, transport, None)
    with pytest.raises(AddressUnusable) as raised:
        SocketTransport(f"ipc://{home}/{name}x")
    assert raised.value.why == "the path of a socket has at most 103 bytes"


def test_a_folder_that_others_open(home: Path) -> None:
    home.chmod(0o755)
    with pytest.raises(
        UnsafeKeys, check=code("FolderUnsafe"), match="its mode is 0755"
    ):
        SocketTransport(f"ipc://{home}/w")
    assert [*home.iterdir()] == []
    assert os.path.isdir(home)


def test_what_the_errors_say() -> None:
    assert str(
        UnsafeKeys(code="KeysNeeded", address="tcp://0.0.0.0:5")
    ).splitlines() == [
        "A worker at `tcp://0.0.0.0:5` without keys would run the calls of every "
        "process",
        "that can reach it.",
        "  to do: pass a folder of keys, or an `ipc:///folder` of this machine",
    ]
    assert str(
        UnsafeKeys(code="FolderUnsafe", path="/a/b", why="it is a link")
    ).splitlines() == [
        "`/a/b` is not safe: it is a link.",
        "  to do: have it owned by this user, folders with mode 0700, files with 0600,",
        "         and no link in between",
    ]
    assert str(AddressUnusable(address="tcp://x:1", why="it is taken")) == (
        "No worker can listen at `tcp://x:1`: it is taken."
    )
    assert str(UnsafeKeys(code="NotAKey", path="/a/secret.key", why="it is empty")) == (
        "`/a/secret.key` does not hold a key: it is empty."
    )
    assert str(BlockGone(why="its lender has ended")) == (
        "A block of shared memory cannot be opened: its lender has ended."
    )


def test_a_name_within_the_process_is_taken_once() -> None:
    with closing(LocalTransport("w")):
        with pytest.raises(AddressUnusable) as raised:
            LocalTransport("w")
        assert str(raised.value) == (
            "No worker can listen at `local://w`: another worker has this name."
        )
    LocalTransport("w").close()
