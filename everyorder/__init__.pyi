# The public names: those of the harness, and the three packages.

from everyorder import harness as harness
from everyorder import invariants as invariants
from everyorder import runtime as runtime
from everyorder.harness import *

__version__: str
