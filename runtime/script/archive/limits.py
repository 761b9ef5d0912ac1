"""Limits: how much of everything a reader of archives takes.

They bound what an archive that somebody made to do harm costs its reader: memory, time,
depth of the stack. Tensors are not counted: they are as large as the file is."""

# The version that is written, and the newest that is read.
VERSION = 1

# Members of the zip file; source: a program of 10,000 functions has as many.
MEMBERS = 50_000
# Bytes of the directory of the zip file, which is read as a whole.
DIRECTORY = 16 << 20
# Characters of the name of a member, of a qualified name.
NAME = 512
# Bytes of one text, and of all of them, when they are unpacked.
TEXT = 16 << 20
TEXTS = 64 << 20
# Unpacked to packed bytes; source: deflate reaches 1,032, program texts stay below 40.
RATIO = 400
# Values within values that stand in each other's text: tuples, attributes.
DEPTH = 64
# Declared types, functions, shared values, storages.
TYPES = 50_000
FUNCTIONS = 50_000
VALUES = 2_000_000
STORAGES = 200_000
# Dimensions of a tensor; source: what tensors have.
DIMENSIONS = 64
# The boundary on which the bytes of tensors begin; source: a cache line.
ALIGNMENT = 64
