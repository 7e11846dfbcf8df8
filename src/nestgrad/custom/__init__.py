"""Operations and derivative rules of one's own."""

from nestgrad.custom.operation import Operation, define

__all__ = ["Operation", "define"]
