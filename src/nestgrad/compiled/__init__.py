"""Compiled functions: a program, optimised, run by an executor."""
