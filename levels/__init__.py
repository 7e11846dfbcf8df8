"""Levels: backends that wrap a backend and differentiate, batch or record it."""
