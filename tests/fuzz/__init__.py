"""Searches at random, each one command with a seed that repeats it."""
