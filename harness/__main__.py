"""`python -m harness`: the same as the command `everyorder`."""

from harness.cli import main

if __name__ == "__main__":
    main(prog_name="everyorder")
