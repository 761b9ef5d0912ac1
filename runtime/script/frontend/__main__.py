"""`python -m runtime.script.frontend`: the reference of the language, as markdown.

Modules that are named are imported first: what they add is in it.
"""

import sys

from runtime.locks import load
from runtime.script.frontend.language import reference, sections

if __name__ == "__main__":
    for name in sys.argv[1:]:
        load(name)
    print(reference() + sections(), end="")
