"""Operations and derivative rules of one's own."""

from nestgrad.custom.operation import Operation, define
from nestgrad.custom.rules import custom_jvp, custom_vjp

__all__ = ["Operation", "custom_jvp", "custom_vjp", "define"]
