"""Levels: backends that wrap a backend and differentiate, batch or record it."""

from nestgrad.levels.autodiff import Autodiff
from nestgrad.levels.base import Coat
from nestgrad.levels.batched import Batched
from nestgrad.levels.checkpointing import Balanced
from nestgrad.levels.forward import Forward
from nestgrad.levels.level import Level
from nestgrad.levels.taylor import Taylor
from nestgrad.levels.traced import Traced

__all__ = ["Autodiff", "Balanced", "Batched", "Coat", "Forward", "Level", "Taylor", "Traced"]
