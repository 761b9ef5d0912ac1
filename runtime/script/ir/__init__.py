"""Graphs of programs: what they are made of, their text, and what must hold of them."""
