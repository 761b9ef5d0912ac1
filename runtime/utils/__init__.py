"""Upstream's paths: modules that programs import by the names that they have there.

True only here: nothing but where upstream keeps what has another home here.
"""
