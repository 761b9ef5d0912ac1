"""Remote calls: workers, calls, references; values on the surface, messages below."""
