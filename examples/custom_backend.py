"""A backend of one's own: exact fractions, and with them exact derivatives.

A backend is a class with one method per operation. This one computes with arrays of ``Fraction`` and has what rational functions need.
What it leaves out either follows from what is there (subtraction, powers, ...) or raises ``MissingOp``, which says what to add.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from nestgrad.backends import Backend, missing
from nestgrad.errors import MissingOp
from nestgrad.levels import Autodiff


class FractionBackend(Backend):
    """Arrays are NumPy's object arrays of fractions; those of booleans are its own."""

    name = "fraction"
    default_dtype = np.dtype(object)

    def asarray(self, data: Any, dtype: Any = None) -> Any:
        """Numbers as they are: 0.1 is the binary fraction that Python makes of it, Fraction(1, 10) is a tenth."""
        return np.asarray(np.frompyfunc(Fraction, 1, 1)(data), object)

    def to_numpy(self, x: Any) -> Any:
        """A copy."""
        return np.array(x)

    def shape(self, x: Any) -> tuple[int, ...]:
        """Sizes of the axes."""
        return np.shape(x)

    def dtype(self, x: Any) -> Any:
        """Objects or booleans."""
        return x.dtype

    # A Python float among the operands must not turn fractions into floats, and a 0-dimensional answer has to stay an array.

    def add(self, x: Any, y: Any) -> Any:
        """Sum."""
        return np.asarray(self.asarray(x) + self.asarray(y))

    def mul(self, x: Any, y: Any) -> Any:
        """Product."""
        return np.asarray(self.asarray(x) * self.asarray(y))

    def div(self, x: Any, y: Any) -> Any:
        """Quotient."""
        return np.asarray(self.asarray(x) / self.asarray(y))

    def eq(self, x: Any, y: Any) -> Any:
        """Equality, which the rule of division asks for."""
        return np.asarray(np.equal(x, y), bool)

    def where(self, c: Any, x: Any, y: Any) -> Any:
        """A choice, which the rule of division makes."""
        return self.asarray(np.where(c, x, y))

    def sum(self, x: Any, axes: tuple[int, ...], keepdims: bool = False) -> Any:
        """Sum over axes, with which broadcasting is undone."""
        return np.asarray(np.sum(x, axes, keepdims=keepdims))

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        """The same entries in another shape."""
        return x.reshape(shape)

    def broadcast_to(self, x: Any, shape: tuple[int, ...]) -> Any:
        """Repetition along axes."""
        return np.broadcast_to(x, shape)


def main() -> None:
    """Differentiate 1 / (1 + x^2) three times, without an error in the last digit, or in any."""
    S = Autodiff(Autodiff(Autodiff(FractionBackend())))
    x = S.tensor([Fraction(1, 3), Fraction(7, 1000)], requires_grad=True)
    y = 1 / (1 + x**2)
    third = y.wrt(x).wrt(x).wrt(x).tolist()
    print("f'''(1/3) =", third[0])
    assert third == [24 * q * (1 - q**2) / (1 + q**2) ** 4 for q in (Fraction(1, 3), Fraction(7, 1000))]

    # A cross partial: d^2/dx dw of (w . x)^2 / (1 + w . w), with numbers of 60 digits.
    a, c = Fraction(10**60 + 7, 10**60), Fraction(1, 10**60 - 3)
    p, w = S.tensor(a, requires_grad=True), S.tensor(c, requires_grad=True)
    cross = ((w * p) ** 2 / (1 + w * w)).wrt(p).wrt(w)
    assert cross.item() == 4 * a * c / (1 + c**2) ** 2

    try:
        x.exp()
    except MissingOp as error:  # the exponential of a fraction is none
        print(str(error).partition(":")[0], "is missing, as are", ", ".join(name for name in missing(FractionBackend) if name != "exp"))


if __name__ == "__main__":
    main()
