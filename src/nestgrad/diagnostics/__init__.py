"""What a program does while it runs: where a NaN comes from, and where the time goes."""

from nestgrad.diagnostics.anomaly import detect_anomaly
from nestgrad.diagnostics.profiled import Profiled
from nestgrad.diagnostics.profiling import Profile, Row, profile

__all__ = ["Profile", "Profiled", "Row", "detect_anomaly", "profile"]
