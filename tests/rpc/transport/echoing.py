"""A program that sends back what it gets: `ADDRESS [FOLDER OF KEYS]`.

It prints its endpoint.  A packet's first frame is where the answer goes; the answer is
the others.  It ends when its input ends, and prints what it counted.
"""

import sys

from everyorder.runtime.rpc.transport.addresses import Keys
from everyorder.runtime.rpc.transport.interface import Buffer
from everyorder.runtime.rpc.transport.sockets import SocketTransport


def main(address: str, folder: str = "") -> None:
    keys = Keys.load(folder) if folder else None
    transport = SocketTransport(address, keys, unprotected=not folder)

    def answer(frames: list[Buffer], _key: str) -> None:
        transport.send(bytes(frames[0]).decode(), frames[1:])

    transport.start(answer, lambda: None)
    print(transport.endpoint, flush=True)
    sys.stdin.read()
    print(transport.counts()["received"], flush=True)
    transport.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
