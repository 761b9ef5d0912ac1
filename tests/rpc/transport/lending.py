"""A program that lends blocks and borrows them, spoken to by lines.

sample                 its sample
reaches HEX            whether it can open the blocks of a sample
lend BYTE SIZE         a token of so many of that byte, or "none"
borrow HEX             the first and the last byte, and the number of bytes
write HEX              the same, after writing to the first byte
drop                   let go of what was borrowed; the lendings
returned NUMBER        take a block back
limit SIZE             no file may be larger
"""

import resource
import sys

from everyorder.runtime.errors import BlockGone
from everyorder.runtime.rpc.transport.shared_memory import LentBlocks, MappedBlocks


def main() -> None:
    blocks: LentBlocks[str] = LentBlocks()
    borrowed: MappedBlocks[str] = MappedBlocks()
    views: list[memoryview] = []

    def answer(order: str, *words: str) -> object:
        if order == "sample":
            return blocks.sample().hex()
        if order == "reaches":
            return borrowed.reaches(bytes.fromhex(words[0]))
        if order == "lend":
            buffer = bytes([int(words[0])]) * int(words[1])
            tokens = blocks.lend([buffer], "other")
            return tokens[0].hex() if tokens else "none"
        if order in ("borrow", "write"):
            try:
                view = borrowed.open(bytes.fromhex(words[0]), "other")
            except BlockGone as error:
                return error.why
            if order == "write":
                view[0] = 99
            views.append(view)
            return f"{view[0]} {view[-1]} {len(view)}"
        if order == "drop":
            views.clear()
            return " ".join(str(number) for _, number in borrowed.take_returns())
        if order == "returned":
            return blocks.returned(int(words[0]), "other")
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(words[0]), int(words[0])))
        return "limited"

    for line in sys.stdin:
        print(answer(*line.split()), flush=True)
    blocks.close()


if __name__ == "__main__":
    main()
