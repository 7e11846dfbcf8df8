"""Each example runs as a program, elsewhere than in the repository, and reaches its number.

The examples hold assertions of their own; what is tested here beside them has oracles that the examples do not use.
"""

import re
import sys

import numpy as np
import pytest
from running import EXAMPLES, as_told, figure, relative_error, run

import nestgrad as ng
from nestgrad.levels import Autodiff

WITH_SETTINGS = {"burgers", "burgers_gauss_newton"}
"""They draw pictures and take long; their own tests run them."""

FIGURES = {
    "newton": [("gradient after {} steps", "{} steps; loss", 1.5)],
    "trust_region": [
        ("whose {} eigenvalues", "{} eigenvalues, the lowest", 1),
        ("short way in {} and", "trust-ncg: {} steps", 1.5),
        (r"short way in \d+ and {} steps", "trust-krylov: {} steps", 1.5),
    ],
    "convnet": [("by all {} parameters with a vector", "Hessian of {} parameters", 1)],
    "attention": [("twenty keys, {} by", r"Hessian \({},", 1)],
    "attention_partials": [("queries alone {} numbers are stored", "by X twice, stored: {} of", 1)],
    "double_pendulum": [
        ("a program of {} operations", "a program of {} operations", 1),
        ("their energy to {} J", "conserved to {};", 10),
        ("stay within {} of that", "{} away from the textbook", 10),
    ],
    "christoffel": [("third derivatives, {} away", "{} away from the closed form", 10)],
    "biharmonic_plate": [
        (r"Levy's series \| {}", "in the L2 norm {}", 10),
        (r"\| the deflection in the middle \| {}", "errors: deflection in the middle {}", 10),
        (r"bending moment in the middle \| {}", "moment in the middle {}", 10),
        (r"clamped plate's deflection in the middle \| {}", "clamped plate in the middle {}", 10),
    ],
    "kuramoto_sivashinsky": [("exact wave is {} at most", "at most {}", 10), ("error is {} with seed 0", "L2 error {}", 10)],
    "poisson_ten_dimensions": [("other points is {} after 40 steps", "L2 error {} at", 3)],
    "laplace_beltrami": [
        ("The {} spherical harmonics", "{} spherical harmonics", 1),
        ("both routes are within {} of", "off by {} in coordinates", 10),
        ("both routes are within {} of", "by {} along normals", 10),
    ],
}
"""What the page tells of programs with their defaults."""


@pytest.fixture
def burgers(example):
    """The example as a module."""
    return example("burgers")


@pytest.mark.parametrize("name", sorted({path.stem for path in EXAMPLES.glob("*.py")} - WITH_SETTINGS))
def test_an_example_runs_and_prints_what_the_page_tells(name, tmp_path):
    if re.search(r"^import torch\b", (EXAMPLES / f"{name}.py").read_text(encoding="utf-8"), re.M):
        pytest.importorskip("torch", reason="the example compares with PyTorch")
    printed = run(name, cwd=tmp_path)
    assert printed
    as_told(FIGURES.get(name, ()), printed)


def test_burgers_reaches_three_digits_with_its_defaults(tmp_path):
    printed = run("burgers", "--out", "picture.png", cwd=tmp_path)
    assert relative_error(printed) <= 2 * figure("the relative L2 error is {};") < 1e-3
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_burgers_runs_on_torch_and_takes_its_options(burgers, monkeypatch, capsys, tmp_path):
    pytest.importorskip("torch")

    def error(backend: str) -> float:
        few = "--points 200 --steps 60 --nu 0.1 --seed 1 --tolerance 0.1 --out".split()
        monkeypatch.setattr(sys, "argv", ["burgers.py", "--backend", backend, *few, str(tmp_path / f"{backend}.png")])
        burgers.main()
        return relative_error(capsys.readouterr().out)

    # Rounding differs between the libraries, and sixty steps of L-BFGS enlarge that; the first digits stay.
    assert error("torch") == pytest.approx(error("numpy"), rel=0.2)


def test_burgers_says_what_it_missed(burgers, monkeypatch, tmp_path):
    few = ("--points", "20", "--steps", "2", "--tolerance", "1e-9", "--out", str(tmp_path / "picture.png"))
    monkeypatch.setattr(sys, "argv", ["burgers.py", *few])
    with pytest.raises(AssertionError, match=r"the error is \S+, expected less than 1e-09; try more --steps or --points"):
        burgers.main()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_burgers_with_other_seeds_is_as_near_as_the_page_tells(seed, tmp_path):
    printed = run("burgers", "--seed", str(seed), "--out", "picture.png", cwd=tmp_path)
    assert relative_error(printed) <= 2 * figure(r"over seeds 0 to 4 it was between \S+ and {}\.")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_burgers_resolves_the_front_of_small_viscosity(seed, tmp_path):
    # nu = 0.01 / pi: the front is 0.006 wide
    settings = ("--nu", "0.00318309886", "--points", "2000", "--steps", "5000", "--tolerance", "5e-3", "--seed", str(seed))
    told = figure(("The relative L2 error was {} with seed 0", r"with seed 0 and {} with seed 1")[seed])
    assert relative_error(run("burgers", *settings, "--out", "picture.png", cwd=tmp_path)) <= 2 * told < 5e-3


@pytest.mark.parametrize("nu", [0.05, 0.01 / np.pi])
def test_the_exact_solution_is_the_quotient_of_two_integrals(burgers, nu):
    """The trapezoidal rule over the line, which is exact to rounding for smooth functions that fade out, beside Gauss-Hermite's."""
    x, t = np.meshgrid([-0.9, -0.3, -0.05, 0.003, 0.5], [0.05, 0.3, 1.0])
    eta = np.linspace(-4.0, 4.0, 20_001)
    log_f = -np.cos(np.pi * (x[..., None] - eta)) / (2 * np.pi * nu) - eta**2 / (4 * nu * t[..., None])
    f = np.exp(log_f - log_f.max(axis=-1, keepdims=True))
    right = -(np.sin(np.pi * (x[..., None] - eta)) * f).sum(axis=-1) / f.sum(axis=-1)
    # 1e-11: a hundred nodes are exact to 1e-13, and the logarithms, up to 400 here, carry 1e-13 of rounding
    assert np.allclose(burgers.exact(x, t, nu), right, rtol=0, atol=1e-11)


def test_the_residual_agrees_with_differences_of_the_trial_solution(burgers, example):
    mlp = example("mlp")
    theta = mlp.init(burgers.WIDTHS, np.random.default_rng(3))
    x, t, _ = burgers.points(40, seed=5)
    S = Autodiff(Autodiff(ng.NumpyBackend()))
    r = burgers.residual(S.tensor(theta), S.tensor(x, requires_grad=True), S.tensor(t, requires_grad=True), 0.3).numpy()

    def u(x, t):
        return burgers.trial(ng.tensor(theta), ng.tensor(x), ng.tensor(t)).numpy()

    h = 1e-4
    u_x, u_t = (u(x + h, t) - u(x - h, t)) / (2 * h), (u(x, t + h) - u(x, t - h)) / (2 * h)
    u_xx = (u(x + h, t) - 2 * u(x, t) + u(x - h, t)) / h**2
    # h^2 times a fourth derivative of some hundreds, and 1e-16 / h^2 of rounding
    assert np.allclose(r, u_t + u(x, t) * u_x - 0.3 * u_xx, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_points_with_their_weights_are_a_quadrature_of_the_square(burgers, seed):
    x, t, weight = burgers.points(1000, seed)
    # Exact means over [-1, 1] x [0, 1]; weights up to 2.8 times a discrepancy of some 1 / n
    for values, mean in ((np.ones_like(x), 1), (x**2, 1 / 3), (x, 0), (t, 1 / 2), (x**2 * t, 1 / 6), (np.exp(x) * t**2, np.sinh(1) / 3)):
        assert (weight * values).mean() == pytest.approx(mean, abs=0.02)
