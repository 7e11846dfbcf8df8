"""Option sensitivities as cross partials: Black-Scholes for many spot prices at once.

``price.wrt(spot).wrt(sigma)`` reads as it is written: differentiate the price by the spot, and that by the volatility. Two levels give
two derivatives. Each entry of the price depends on its own spot, volatility and time alone, so the derivative of the sum, which is what
a backward pass gives, is the derivative of each.
"""

import math
from statistics import NormalDist

import numpy as np

import nestgrad as ng
from nestgrad.backends import NumpyBackend
from nestgrad.levels import Autodiff

STRIKE, RATE = 105.0, 0.02


def normal(d: ng.Tensor) -> ng.Tensor:
    """The standard normal distribution function."""
    return 0.5 * (1.0 + ng.erf(d / math.sqrt(2.0)))


def call(spot: ng.Tensor, sigma: ng.Tensor, tau: ng.Tensor) -> ng.Tensor:
    """Price of a European call without dividends; ``tau`` is the time to maturity."""
    d1 = (ng.log(spot / STRIKE) + (RATE + 0.5 * sigma**2) * tau) / (sigma * ng.sqrt(tau))
    d2 = d1 - sigma * ng.sqrt(tau)
    return spot * normal(d1) - STRIKE * ng.exp(-RATE * tau) * normal(d2)


def greeks(spots: list[float], sigma: float, tau: float) -> dict[str, list[float]]:
    """Price and sensitivities for each spot."""
    S = Autodiff(Autodiff(NumpyBackend()))
    s, v, t = (S.tensor(np.broadcast_to(value, len(spots)), requires_grad=True) for value in (spots, sigma, tau))
    price = call(s, v, t)
    delta, vega = price.wrt(s), price.wrt(v)
    table = {
        "price": price,
        "delta": delta,
        "vega": vega,
        "gamma": delta.wrt(s),
        "vanna": delta.wrt(v),
        "volga": vega.wrt(v),
        "charm": -delta.wrt(t),  # per calendar time, which runs against the time to maturity
    }
    return {name: value.tolist() for name, value in table.items()}


def textbook(spot: float, sigma: float, tau: float) -> dict[str, float]:
    """The closed forms: Haug, "The Complete Guide to Option Pricing Formulas", 2nd ed., ch. 2."""
    root = sigma * math.sqrt(tau)
    d1 = (math.log(spot / STRIKE) + (RATE + 0.5 * sigma**2) * tau) / root
    d2 = d1 - root
    density, cdf = NormalDist().pdf(d1), NormalDist().cdf
    vega = spot * density * math.sqrt(tau)
    return {
        "price": spot * cdf(d1) - STRIKE * math.exp(-RATE * tau) * cdf(d2),
        "delta": cdf(d1),
        "vega": vega,
        "gamma": density / (spot * root),
        "vanna": -density * d2 / sigma,
        "volga": vega * d1 * d2 / sigma,
        "charm": -density * (2.0 * RATE * tau - d2 * root) / (2.0 * tau * root),
    }


def main() -> None:
    """Print the sensitivities of five calls, and compare them with the closed forms."""
    spots, sigma, tau = [80.0, 90.0, 100.0, 110.0, 120.0], 0.25, 0.75
    table = greeks(spots, sigma, tau)
    print("spot ", *(f"{spot:>12g}" for spot in spots))
    for name, row in table.items():
        print(f"{name:5}", *(f"{value:12.6f}" for value in row))

    for k, spot in enumerate(spots):
        for name, value in textbook(spot, sigma, tau).items():
            assert math.isclose(table[name][k], value, rel_tol=1e-9), (name, spot)
    at_100 = {name: row[2] for name, row in table.items()}
    assert math.isclose(at_100["vanna"], 0.4213169571385252, rel_tol=1e-12)
    assert math.isclose(at_100["charm"], -0.10703009514582643, rel_tol=1e-12)


if __name__ == "__main__":
    main()
