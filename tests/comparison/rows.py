"""The rows of the comparison in README.md and docs/comparison.md.

The key of a row is the name of a test in each ``test_<library>.py`` of this folder; the docstring of that test is the cell. So a cell
that nobody has run cannot stand in the table, and a cell whose claim has become false fails here.
"""

ROWS = {
    "any_order": "fifth derivative of `exp(3*x)`",
    "linear": "second derivative of `2*x`",
    "confusion": "a derivative inside a derivative that closes over the outer variable",
    "lost": "gradient of `u + u_x**2` where `u_x` was taken out of the only graph",
    "branch": "`where(x < 1, x*x, sqrt(x))` at 0, orders 1 and 2",
    "powers": "`sum(x ** [1, 2, 3, 4])` at 0, orders 1 to 5",
    "tails": "`log(sigmoid(x))`, order 2, at 40 and -40",
    "product": "Hessian of `prod` at `[2, 3, 0, 0]`",
    "coupled": "gradient of a sum, where samples depend on each other",
    "shared": "NumPy input written to before the backward pass",
    "twice": "two backward passes over one graph",
    "cycle": "dropping the results frees the graph at once",
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
