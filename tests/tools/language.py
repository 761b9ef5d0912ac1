"""Print the reference of the language as markdown, when run with `python -m`.

Modules that are named are imported first: what they add is in it.
"""

import sys

from everyorder.runtime.base.locks import load
from everyorder.runtime.script.frontend.language import reference, sections

if __name__ == "__main__":
    for name in sys.argv[1:]:
        load(name)
    print(reference() + sections(), end="")
