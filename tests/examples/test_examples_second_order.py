"""Examples of second-order methods and of geometry: their numbers, and oracles that the examples do not use."""

import sys

import numpy as np
import pytest
import sympy
from running import figure, relative_error, run
from scipy.optimize import least_squares

import nestgrad as ng
from nestgrad.levels import Autodiff


@pytest.fixture
def gauss_newton(example):
    """The example as a module."""
    return example("burgers_gauss_newton")


@pytest.fixture
def theta(example):
    """Parameters of the network, some way from where training starts."""
    return example("mlp").init(example("burgers").WIDTHS, np.random.default_rng(7))


def test_gauss_newton_reaches_five_digits_in_75_steps(tmp_path):
    printed = run("burgers_gauss_newton", "--steps", "75", "--tolerance", "1e-5", "--no-compare", "--out", "picture.png", cwd=tmp_path)
    assert relative_error(printed) <= 3 * figure(r"\| 75 steps \| {}") < 1e-5
    assert figure("for {} parameters", printed) == figure("Jacobian by the {} parameters")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("steps", [75, 100])
@pytest.mark.parametrize("seed", range(5))
def test_gauss_newton_with_other_seeds_is_as_near_as_the_page_tells(seed, steps, tmp_path):
    options = ("--steps", str(steps), "--tolerance", "1e-5", "--seed", str(seed), "--no-compare", "--out", "picture.png")
    assert relative_error(run("burgers_gauss_newton", *options, cwd=tmp_path)) <= 3 * figure(rf"\| {steps} steps \| \S+ \| \S+ to {{}}")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_gauss_newton_reaches_six_digits_with_its_defaults_and_lbfgs_does_not(seed, tmp_path):
    printed = run("burgers_gauss_newton", "--seed", str(seed), "--out", "picture.png", cwd=tmp_path)
    assert relative_error(printed) <= 3 * figure(r"\| 150 steps, the default \| \S+ \| \S+ to {}") < 1e-6
    assert figure("seconds: relative error {}", printed) > figure(r"in the time of 150 steps \| more than {}")


@pytest.mark.slow
def test_gauss_newton_resolves_the_front_of_small_viscosity(tmp_path):
    settings = ("--nu", "0.00318309886", "--points", "4000", "--tolerance", "1e-5", "--no-compare", "--out", "picture.png")
    printed = run("burgers_gauss_newton", *settings, cwd=tmp_path)
    assert relative_error(printed) <= 3 * figure("The relative L2 error was {} after 150") < 1e-5


def test_gauss_newton_runs_on_torch_and_says_what_it_missed(gauss_newton, monkeypatch, capsys, tmp_path):
    pytest.importorskip("torch")

    def error(backend: str) -> float:
        few = "--points 50 --steps 4 --nu 0.1 --seed 1 --tolerance 1e-9 --no-compare --out".split()
        monkeypatch.setattr(sys, "argv", ["burgers_gauss_newton.py", "--backend", backend, *few, str(tmp_path / f"{backend}.png")])
        with pytest.raises(AssertionError, match=r"the error is \S+, expected less than 1e-09; try more --steps or --points"):
            gauss_newton.main()
        return relative_error(capsys.readouterr().out)

    assert error("torch") == pytest.approx(error("numpy"), rel=1e-3)  # steps enlarge what rounding differs by


def test_rows_of_the_jacobian_are_gradients_of_the_residual_in_the_plain_style(gauss_newton, example, theta):
    """Three levels of reverse mode and a backward pass for each point, beside forward, Taylor, reverse and batched levels."""
    r = gauss_newton.Residuals(ng.NumpyBackend(), 0.3, 18)
    x, t, weight = gauss_newton.gauss_points(18)
    assert x.shape == (18, 1)
    values, jacobian = r.linearized(theta)
    np.testing.assert_allclose(values, r(theta), rtol=0, atol=1e-14)
    S = Autodiff(Autodiff(Autodiff(ng.NumpyBackend())))
    for k in range(18):
        p = S.tensor(theta, requires_grad=True)
        one = (S.tensor(points[k : k + 1], requires_grad=True) for points in (x, t))
        right = example("burgers").residual(p, *one, 0.3).sum() * weight[k, 0] ** 0.5
        assert values[k] == pytest.approx(right.item(), rel=1e-12)
        np.testing.assert_allclose(jacobian[k], right.wrt(p).numpy(), rtol=1e-11, atol=1e-12)


def test_the_second_derivative_along_a_step_is_that_of_differences(gauss_newton, theta):
    r = gauss_newton.Residuals(ng.NumpyBackend(), 0.3, 18)
    step, h = np.random.default_rng(0).normal(size=theta.size) / 10, 1e-4
    differences = (r(theta + h * step) - 2 * r(theta) + r(theta - h * step)) / h**2
    # 1e-16 / h^2 of rounding, times residuals of some tens
    np.testing.assert_allclose(r.second(theta, step), differences, rtol=1e-5, atol=1e-6)


class Decay:
    """Residuals of a exp(-b t) + c at seven places, and their derivatives by hand."""

    t = np.linspace(0.0, 3.0, 7)
    data = 2.0 * np.exp(-1.3 * t) + 0.5 + 0.01 * np.cos(9.0 * t)

    def __call__(self, p):
        return p[0] * np.exp(-p[1] * self.t) + p[2] - self.data

    def linearized(self, p):
        power = np.exp(-p[1] * self.t)
        return self(p), np.stack([power, -p[0] * self.t * power, np.ones_like(self.t)], axis=1)

    def second(self, p, d):
        power = np.exp(-p[1] * self.t)
        return -2 * d[0] * d[1] * self.t * power + d[1] ** 2 * p[0] * self.t**2 * power


def test_levenberg_marquardt_ends_where_scipys_least_squares_does(gauss_newton):
    r, start = Decay(), np.array([1.0, 0.1, 0.0])
    path = [start, *gauss_newton.levenberg_marquardt(r, start)]
    losses = [r(p) @ r(p) for p in path]
    assert losses == sorted(set(losses), reverse=True)
    assert len(path) < 100
    right = least_squares(r, start, xtol=1e-15, ftol=1e-15, gtol=1e-15).x
    # sums of squares that differ by rounding, 1e-16, are of places that differ by its root
    np.testing.assert_allclose(path[-1], right, rtol=0, atol=1e-6)


@pytest.mark.parametrize("n", [50, 1000])
def test_sums_over_gauss_points_are_means_over_the_square(gauss_newton, n):
    x, t, weight = gauss_newton.gauss_points(n)
    # x is a cubic of the place z, so that 10 places in z are exact up to the fifth power of x, and 5 in t up to the ninth of t
    for values, mean in ((np.ones_like(x), 1), (x**2, 1 / 3), (x, 0), (t, 1 / 2), (x**4, 1 / 5), (t**9, 1 / 10), (x**4 * t**2, 1 / 15)):
        assert (weight * values).sum() == pytest.approx(mean, abs=1e-14)


def test_accelerations_are_those_that_sympy_derives(example):
    pendulum = example("double_pendulum")
    time = sympy.Symbol("t")
    q = [sympy.Function(name)(time) for name in ("a", "b")]
    v = [angle.diff(time) for angle in q]
    m1, m2, l1, l2, g = (sympy.Rational(str(getattr(pendulum, name))) for name in ("M1", "M2", "L1", "L2", "G"))
    first = sympy.Matrix([l1 * sympy.sin(q[0]), -l1 * sympy.cos(q[0])])  # places in the plane, where the example has angles
    second = first + sympy.Matrix([l2 * sympy.sin(q[1]), -l2 * sympy.cos(q[1])])
    motion = m1 * first.diff(time).dot(first.diff(time)) / 2 + m2 * second.diff(time).dot(second.diff(time)) / 2
    difference = motion - g * (m1 * first[1] + m2 * second[1])
    equations = sympy.Matrix([difference.diff(w).diff(time) - difference.diff(angle) for angle, w in zip(q, v, strict=True)])
    a = sympy.symbols("a1 a2")
    equations = equations.subs(dict(zip((w.diff(time) for w in v), a, strict=True)))
    matrix, rest = equations.jacobian(a), equations.subs(dict.fromkeys(a, 0))
    for state in np.random.default_rng(3).uniform(-3, 3, (4, 4)):
        at = {**dict(zip(v, state[2:], strict=True)), **dict(zip(q, state[:2], strict=True))}
        right = -matrix.subs(at).LUsolve(rest.subs(at))
        found = pendulum.accelerations(ng.tensor(state[:2]), ng.tensor(state[2:])).numpy()
        np.testing.assert_allclose(found, np.array(right.evalf(), dtype=np.float64)[:, 0], rtol=1e-11, atol=1e-12)


def test_curvature_of_a_metric_without_symmetries_is_sympys(example):
    geometry = example("christoffel")
    place = np.array([0.3, -0.4, 0.7])
    x = sympy.symbols("x y z")
    g = sympy.Matrix([[2 + x[0] * x[1], x[2] / 3, 0], [x[2] / 3, 3 + sympy.sin(x[0]), x[1] ** 2], [0, x[1] ** 2, sympy.exp(x[0] * x[2])]])

    def metric(p):
        a, b, c = p
        nothing = ng.zeros_like(a)
        rows = [2 + a * b, c / 3, nothing], [c / 3, 3 + ng.sin(a), b**2], [nothing, b**2, ng.exp(a * c)]
        return ng.stack([ng.stack(row) for row in rows])

    at = dict(zip(x, map(sympy.Float, place), strict=True))
    here = np.array(g.subs(at), dtype=np.float64)
    inverse = np.linalg.inv(here)
    slopes = np.array([g.diff(a).subs(at) for a in x], dtype=np.float64)  # [i, k, l]: d_i g_kl
    second = np.array([[g.diff(a, b).subs(at) for b in x] for a in x], dtype=np.float64)
    gamma = np.einsum("km,mij->kij", inverse, slopes.transpose(1, 2, 0) + slopes.transpose(1, 0, 2) - slopes) / 2
    # Landau and Lifshitz, "The Classical Theory of Fields", 4th ed., eq. 92.1, of which the example uses another form
    half = (np.einsum("klim->iklm", second) + np.einsum("imkl->iklm", second)) / 2 + np.einsum("np,nkl,pim->iklm", here, gamma, gamma)
    ricci = np.einsum("il,iklm->km", inverse, half - half.transpose(0, 1, 3, 2))

    p = ng.tensor(place)
    np.testing.assert_allclose(geometry.christoffel(metric, p).numpy(), gamma, rtol=0, atol=1e-14)
    np.testing.assert_allclose(geometry.ricci(metric, p).numpy(), ricci, rtol=0, atol=1e-13)
    assert geometry.scalar(metric, p).item() == pytest.approx(np.sum(inverse * ricci), rel=1e-12)


def test_the_band_lies_on_the_sphere_and_even_arcs_have_the_energy_of_their_chords(example):
    band = example("trust_region")
    places = band.on_sphere(ng.tensor(np.random.default_rng(0).normal(size=(20, 2)))).numpy()
    np.testing.assert_allclose(np.linalg.norm(places, axis=1), 1.0, rtol=1e-14)
    for angle in (1.5 * np.pi, -0.5 * np.pi):
        chords = band.SPRINGS * (2 - 2 * np.cos(angle / band.SPRINGS))
        assert band.energy(ng.tensor(band.equator(angle))).item() == pytest.approx(chords, rel=1e-12)
