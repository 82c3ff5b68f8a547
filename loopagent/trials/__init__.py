"""Trying actions out: the tests inside of their files, against a stand-in for the rest of the world."""
