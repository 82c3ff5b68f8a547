"""Tests of the library of actions that are built in the page."""
