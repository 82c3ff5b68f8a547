"""A project folder: agents, actions, instructions and settings, read as a whole and complained about as a whole."""

from __future__ import annotations

from loopagent.project.loading import Project, load_means, load_project
from loopagent.project.skills import load_skill


__all__ = ["Project", "load_means", "load_project", "load_skill"]
