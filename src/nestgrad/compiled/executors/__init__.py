"""Executors: from a program to a function of raw arrays that runs it."""

from nestgrad.compiled.executors.buffers import buffers
from nestgrad.compiled.executors.native import native, unavailable
from nestgrad.compiled.executors.replay import replay

__all__ = ["buffers", "native", "replay", "unavailable"]
