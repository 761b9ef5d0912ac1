"""Exploration of one scenario, and the search for scenarios in files."""
