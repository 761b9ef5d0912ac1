"""Child processes that explore, and their time limits."""
