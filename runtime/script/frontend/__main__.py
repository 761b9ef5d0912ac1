"""`python -m runtime.script.frontend`: the reference of the language, as markdown."""

from runtime.script.frontend.language import reference

if __name__ == "__main__":
    print(reference(), end="")
