"""Second derivatives through time: a recurrent network that is trained not to listen to its first input.

A gated recurrent unit (Cho et al., 2014) runs over a sequence. The penalty is the squared norm of the gradient of its last state by the
first input, so that the penalty's gradient by the weights goes back through time twice. Beside it stands a product with the Hessian of the
loss, by one pass of forward mode over one of reverse mode. Both are compared with torch's own recurrent unit and its derivatives.
"""

import argparse
from collections.abc import Sequence

import numpy as np
import speed_up
import torch
from numpy.typing import NDArray

import nestgrad as ng
from nestgrad.backends import NumpyBackend
from nestgrad.func import grad, jvp
from nestgrad.levels import Autodiff

Arrays = Sequence[NDArray[np.float64]]

INPUTS, STATES, STEPS = 3, 4, 15
SHAPES = ((3 * STATES, INPUTS), (3 * STATES, STATES), (3 * STATES,), (3 * STATES,))


def cell(x: ng.Tensor, h: ng.Tensor, theta: Sequence[ng.Tensor]) -> ng.Tensor:
    """One step. The rows of the weights belong to the gates: reset, update, new."""
    w, u, b, c = theta
    a, s = w @ x + b, u @ h + c
    n = STATES
    reset, update = ng.sigmoid(a[:n] + s[:n]), ng.sigmoid(a[n : 2 * n] + s[n : 2 * n])
    new = ng.tanh(a[2 * n :] + reset * s[2 * n :])
    return (1.0 - update) * new + update * h


def last(first: ng.Tensor, rest: ng.Tensor, theta: Sequence[ng.Tensor]) -> ng.Tensor:
    """The state after a sequence, whose first input stands apart."""
    h = cell(first, ng.zeros(STATES), theta)
    for x in rest:
        h = cell(x, h, theta)
    return h


def torchs(sequence: NDArray[np.float64], theta: Sequence[NDArray[np.float64]]) -> tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]:
    """Weights, penalty and loss, by torch's own unit."""
    unit = torch.nn.GRU(INPUTS, STATES, dtype=torch.float64)
    weights: list[torch.Tensor] = list(unit.parameters())
    with torch.no_grad():
        for parameter, value in zip(weights, theta, strict=True):
            parameter.copy_(torch.tensor(value))
    x = torch.tensor(sequence, requires_grad=True)
    state: torch.Tensor = unit(x)[0][-1]
    (sensitivity,) = torch.autograd.grad(state.sum(), x, create_graph=True)
    return weights, (sensitivity[0] ** 2).sum(), (state**2).sum()


def main() -> None:
    """The gradient of the penalty, and a Hessian times a vector."""
    parser = argparse.ArgumentParser(description="Second derivatives of a recurrent network.")
    speed_up.option(parser)
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    sequence = rng.normal(size=(STEPS, INPUTS))
    values, directions = ([rng.normal(size=shape) for shape in SHAPES] for _ in range(2))

    S = Autodiff(Autodiff(NumpyBackend()))

    def evaluate(inputs: ng.Tensor, weights: Sequence[ng.Tensor]) -> list[ng.Tensor]:
        first, theta = S.tensor(inputs, requires_grad=True), [S.tensor(w, requires_grad=True) for w in weights]
        sensitivity = last(first, ng.tensor(sequence[1:]), theta).wrt(first)
        gradients = (sensitivity**2).sum().backward()
        return [w.grad(gradients).detach() for w in theta]  # numbers: nobody differentiates them once more

    start, theta = ng.tensor(sequence[0]), [ng.tensor(v) for v in values]
    jitted = ng.jit(evaluate)
    ours = [g.numpy() for g in (jitted if options.jit else evaluate)(start, theta)]

    weights, penalty, loss = torchs(sequence, values)
    right = [g.numpy() for g in torch.autograd.grad(penalty, weights, retain_graph=True)]
    slip = max(abs(a - b).max() / abs(b).max() for a, b in zip(ours, right, strict=True))
    print(f"gradient of a penalty on the gradient, through {STEPS} steps: {slip:.0e} away from torch's")
    assert slip < 1e-12
    if options.jit:
        speed_up.tell("gradient of the penalty", evaluate, jitted, start, theta, calls=20)

    def f(theta: Sequence[ng.Tensor]) -> ng.Tensor:
        return (last(ng.tensor(sequence[0]), ng.tensor(sequence[1:]), theta) ** 2).sum()

    def along_directions(values: Arrays, directions: Arrays) -> Sequence[ng.Tensor]:
        found: Sequence[ng.Tensor] = jvp(grad(f), (values,), (directions,))[1]
        return found

    jitted = ng.jit(along_directions)
    product = (jitted if options.jit else along_directions)(values, directions)
    first_order = torch.autograd.grad(loss, weights, create_graph=True)
    along = sum((g * torch.tensor(v)).sum() for g, v in zip(first_order, directions, strict=True))
    assert isinstance(along, torch.Tensor)
    right = [g.numpy() for g in torch.autograd.grad(along, weights)]
    slip = max(abs(a.numpy() - b).max() / abs(b).max() for a, b in zip(product, right, strict=True))
    print(f"Hessian times vector: {slip:.0e} away from torch's")
    assert slip < 1e-12
    if options.jit:
        speed_up.tell("Hessian times vector", along_directions, jitted, values, directions, calls=20)


if __name__ == "__main__":
    main()
