"""Exploring one scenario, and finding scenarios in files."""
