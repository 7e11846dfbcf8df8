"""Measurements of nestgrad beside other libraries: ``python -m benchmarks.run``. Nothing here is a test; no time is asserted."""
