"""All mutants, section by section."""

from tests.mutants.mutant import Mutant
from tests.mutants.run_mutants import RUN
from tests.mutants.step_mutants import STEP
from tests.mutants.structure_mutants import STRUCTURE
from tests.mutants.table_mutants import TABLE

MUTANTS: tuple[Mutant, ...] = (*STRUCTURE, *TABLE, *STEP, *RUN)
