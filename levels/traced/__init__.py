"""Tracing: a function as a program of base ops, which is an op with rules of its own on every level."""

from nestgrad.levels.traced.level import Traced
from nestgrad.levels.traced.program import Instruction, Program, Variable

__all__ = ["Instruction", "Program", "Traced", "Variable"]
