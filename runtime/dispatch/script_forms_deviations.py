"""Deviations of classes and special forms in scripts.

True only here: this part of the table in `runtime.dispatch.deviations`.
"""

from runtime.dispatch.deviation import Deviation

SCRIPTS_FORMS = (
    Deviation(
        "`len` of an await in a script",
        "1: the await is put into a list",
        "refused",
        "the length is that of nothing that was written",
    ),
    Deviation(
        "`wait()` of an await in a script",
        "an attribute of its value, which has none",
        "waits, as in Python",
        "a function does the same, scripted or not",
    ),
    Deviation(
        "values of class bodies in a script",
        "refused",
        "constants, if they are numbers, texts, members, None, or tuples of these",
        "a class is scripted as it is written",
    ),
    Deviation(
        "objects of classes without `__eq__` or `__bool__` in a script",
        "are not compared, and are no conditions",
        "are equal if they are the same, and true, as in Python",
        "a function does the same, scripted or not",
    ),
    Deviation(
        "members of enums that are numbers or texts in a script",
        "are compared by identity only",
        "have the operators of their values",
        "a function does the same, scripted or not",
    ),
    Deviation(
        "a sub-class in a script",
        "compiled without what it inherits",
        "refused by name",
        "a method that is missing is told where the class is, not where it is called",
    ),
)
