"""A double pendulum from its Lagrangian alone: nobody writes the equations of motion down, derivatives of L are they.

The Euler-Lagrange equations, d/dt (dL/dv) = dL/dq, are linear in the accelerations a:

    (d2L/dv dv) a = dL/dq - (d2L/dv dq) v.

The matrix is a Hessian; the last product is the derivative of the gradient dL/dv along the velocity, a jvp of a grad. The energy
v dL/dv - L of the orbit is conserved, it is compared with that of the textbook's equations, and the Hessian by q at rest gives the
frequencies of small oscillations.

An orbit takes thousands of accelerations. ``trace`` writes down once what one of them computes: a program of some sixty operations, in
which no derivative is left. ``--jit`` runs it optimised, as straight-line code.
"""

import argparse
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import speed_up
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import nestgrad as ng
from nestgrad.func import call, grad, hessian, jvp, trace

Array = NDArray[np.float64]
M1, M2, L1, L2, G = 1.0, 0.5, 1.0, 1.5, 9.81


def lagrangian(q: ng.Tensor, v: ng.Tensor) -> ng.Tensor:
    """Kinetic less potential energy, at angles ``q`` from the vertical and angular velocities ``v``."""
    (t1, t2), (w1, w2) = q, v
    kinetic = 0.5 * (M1 + M2) * (L1 * w1) ** 2 + 0.5 * M2 * (L2 * w2) ** 2 + M2 * L1 * L2 * w1 * w2 * ng.cos(t1 - t2)
    return kinetic + (M1 + M2) * G * L1 * ng.cos(t1) + M2 * G * L2 * ng.cos(t2)


def accelerations(q: ng.Tensor, v: ng.Tensor) -> ng.Tensor:
    """What the Lagrangian says about the second derivative of ``q`` by the time."""
    momentum = grad(lagrangian, argnums=1)
    force = grad(lagrangian)(q, v) - jvp(lambda q: momentum(q, v), (q,), (v,))[1]
    found: ng.Tensor = ng.linalg.solve(hessian(lagrangian, argnums=1)(q, v), force)
    return found


def energy(q: Array, v: Array) -> float:
    """Conserved, since the Lagrangian does not depend on the time."""
    momentum = grad(lagrangian, argnums=1)(q, v).numpy()
    return float(v @ momentum - lagrangian(ng.tensor(q), ng.tensor(v)).numpy())


def accelerations_by_hand(q: Array, v: Array) -> Array:
    """The textbook's."""
    (t1, t2), (w1, w2), d = q, v, q[0] - q[1]
    sin, cos, heavy = math.sin(d), math.cos(d), M1 + M2
    below = M1 + M2 * sin**2
    first = M2 * G * math.sin(t2) * cos - M2 * sin * (L1 * w1**2 * cos + L2 * w2**2) - heavy * G * math.sin(t1)
    second = heavy * (L1 * w1**2 * sin - G * math.sin(t2) + G * math.sin(t1) * cos) + M2 * L2 * w2**2 * sin * cos
    return np.array([first / (L1 * below), second / (L2 * below)])


def orbit(f: Callable[[Array, Array], Array], start: Array, moments: Array) -> Array:
    """Angles and velocities at the moments, one column for each, for accelerations ``f``."""
    found = solve_ivp(
        lambda _, y: np.concatenate([y[2:], f(y[:2], y[2:])]), (0.0, moments[-1]), start, "DOP853", moments, rtol=1e-12, atol=1e-12
    )
    path: Array = found.y
    return path


def frequencies() -> Array:
    """Of small oscillations about rest: (d2L/dq dq + w^2 d2L/dv dv) x = 0 has solutions for two w."""
    rest = np.zeros(2)
    mass, stiffness = hessian(lagrangian, argnums=1)(rest, rest).numpy(), -hessian(lagrangian)(rest, rest).numpy()
    return np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(mass, stiffness))))


def main() -> None:
    """Accelerations at a point, four seconds of a wild orbit, and small oscillations."""
    parser = argparse.ArgumentParser(description="A double pendulum from its Lagrangian.")
    speed_up.option(parser)
    options = parser.parse_args()

    at = np.array([0.5, -0.3]), np.array([0.7, -1.1])
    program = trace(accelerations)(*at)
    plain = partial(call, program)
    jitted = ng.jit(plain)
    chosen = jitted if options.jit else plain

    def numbers(q: Array, v: Array) -> Array:
        found: Array = chosen(ng.tensor(q), ng.tensor(v)).numpy()
        return found

    a = numbers(*at)
    print(f"accelerations {a[0]:.12f} {a[1]:.12f}, a program of {len(program.instructions)} operations")
    assert np.allclose(a, accelerations_by_hand(*at), rtol=1e-13)
    assert np.allclose(a, accelerations(*map(ng.tensor, at)).numpy(), rtol=1e-14)

    start, moments = np.array([2.0, 2.5, 0.0, 0.0]), np.linspace(0.0, 4.0, 41)
    path = orbit(numbers, start, moments)
    apart = abs(path - orbit(accelerations_by_hand, start, moments)).max()
    energies = np.array([energy(y[:2], y[2:]) for y in path.T])
    drift = abs(energies - energies[0]).max()
    print(f"energy {energies[0]:.6f} J, conserved to {drift:.0e}; {apart:.0e} away from the textbook's orbit")
    if options.jit:
        speed_up.tell("accelerations", plain, jitted, *map(ng.tensor, at), calls=100)
    assert drift < 1e-9
    assert apart < 1e-8  # the motion is chaotic: what rounding and step sizes add grows on the way

    # m1 l1 l2 w^4 - (m1 + m2) g (l1 + l2) w^2 + (m1 + m2) g^2 = 0
    by_hand = np.sqrt(np.sort(np.roots([M1 * L1 * L2, -(M1 + M2) * G * (L1 + L2), (M1 + M2) * G**2])))
    print("small oscillations, in Hz:", *(f"{w / (2 * math.pi):.6f}" for w in frequencies()))
    assert np.allclose(frequencies(), by_hand, rtol=1e-13)


if __name__ == "__main__":
    main()
