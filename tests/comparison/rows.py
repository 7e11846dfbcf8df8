"""The rows of the comparison in README.md and docs/comparison.md.

The key of a row is the name of a test in each ``test_<library>.py`` of this folder; the docstring of that test is the cell. So a cell
that nobody has run cannot stand in the table, and a cell whose claim has become false fails here.
"""

import math

import numpy as np

ROWS = {
    "any_order": "fifth derivative of `exp(3*x)`",
    "linear": "second derivative of `2*x`",
    "confusion": "a derivative inside a derivative that closes over the outer variable",
    "lost": "gradient of `u + u_x**2` where `u_x` was taken out of the only graph",
    "branch": "`where(x < 1, x*x, sqrt(x))` at 0, orders 1 and 2",
    "powers": "`sum(x ** [1, 2, 3, 4])` at 0, orders 1 to 5",
    "tails": "`log(sigmoid(x))`, order 2, at 40 and -40",
    "product": "Hessian of `prod` at `[2, 3, 0, 0]`",
    "sinc": "second derivative of `sinc` at 0",
    "det": "Hessian of `det` at the identity, and at `ones((3, 3))`",
    "solved": "forward mode over forward mode of `linalg.solve`",
    "coupled": "gradient of a sum, where samples depend on each other",
    "shared": "NumPy input written to before the backward pass",
    "twice": "two backward passes over one graph",
    "cycle": "dropping the results frees the graph at once",
    "columns": "`functional.jacobian` in forward mode, with `create_graph` or without `vectorize`",
    "strict": "`functional.jacobian` with `strict` and `vectorize`",
    "laplacian": "Laplacian in one run, without the second derivatives that it is the sum of",
    "sparse": "Hessian as a sparse matrix, without its zeros",
    "digits": "arithmetic of your own, such as 50 digits",
    "complex": "complex numbers",
    "modes": "beside reverse mode",
}

LIBRARIES = {
    "nestgrad": "nestgrad",
    "torch_autograd": "torch.autograd",
    "torch_func": "torch.func",
    "jax": "JAX",
    "autograd": "autograd",
}

BURN = {"any_order": "first order only"}
"""What is known of Burn, which is not run here.

``Device::autodiff`` says: "Only first-order autodiff is supported. Calling this method on a device that already has autodiff enabled
will panic." (tracel-ai/burn, August 2026)
"""

FIFTH = 243.0 * 2.718281828459045**1.5
"""243 exp(3 * 0.5)."""

NESTED = -9.753535123572703
"""d/dx of x * g(x*x) with g(y) = d/dy (y sin(x y)), at 1.2: from a computer algebra system."""

TAIL = -4.248354255291589e-18
"""The second derivative of log(sigmoid(x)) at 40 and at -40, to all digits of a double."""

TWO_ZEROS = [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 6.0], [0.0, 0.0, 6.0, 0.0]]
"""The Hessian of the product of 2, 3, 0, 0."""

SINC = -(math.pi**2) / 3
"""The second derivative of sin(pi x) / (pi x) at 0, from its series."""

_SIGNS = np.array([[[(i - j) * (j - k) * (k - i) / 2 for k in range(3)] for j in range(3)] for i in range(3)])
"""Of the permutations of 0, 1, 2; 0 for what is none."""

DET = [np.einsum("ikm,jln,mn->ijkl", _SIGNS, _SIGNS, a) for a in (np.eye(3), np.ones((3, 3)))]
"""The Hessian of the determinant of these two matrices, from its definition as a sum over permutations."""

MATRIX, RIGHT_SIDE = np.array([[3.0, 1.0], [0.5, 2.0]]), np.array([1.0, -2.0])

SOLVED = 2 * np.linalg.matrix_power(np.linalg.inv(MATRIX), 3) @ RIGHT_SIDE
"""The second derivative by t, at 0, of what solves (MATRIX + t) x = RIGHT_SIDE."""
