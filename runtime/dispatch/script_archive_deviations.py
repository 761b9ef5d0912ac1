"""Deviations of the text of programs, and of their archives.

True only here: this part of the table in `runtime.dispatch.deviations`.
"""

from runtime.dispatch.deviation import Deviation

SCRIPTS_ARCHIVE = (
    Deviation(
        "kinds of nodes of plug-ins in the text of a program",
        "written without operands, and not read back",
        "written with all operands and attributes, or as the plug-in says",
        "what is saved is meant to be loaded",
    ),
    Deviation(
        "the data of an archive",
        "a pickle, which runs what it names when it is loaded",
        "JSON and bytes; nothing runs, and names are those of the archive",
        "a file that somebody sends must not run code",
    ),
    Deviation(
        "what of an archive is compiled when it is loaded",
        "its code, as Python",
        "its graphs, as text, which are checked; the code is there to be read",
        "what comes back is the very graph, and its text again the same",
    ),
    Deviation(
        "classes that are loaded",
        "the ones of the process if their names are equal",
        "Python classes of their own, for each archive",
        "what was saved is what comes back, whatever has changed since",
    ),
    Deviation(
        "saving to a path where writing fails",
        "leaves half a file in place of the old one",
        "leaves the old one",
        "a failed call changes nothing",
    ),
)
