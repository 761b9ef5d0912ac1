"""Collection through pytest: scenarios and tests as tasks of a command."""
