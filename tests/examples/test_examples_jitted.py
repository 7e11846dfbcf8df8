"""Examples with ``--jit``: they reach the same numbers, by functions that are traced once, and tell what that saves."""

import re
import sys
from functools import partial
from itertools import islice

import numpy as np
import pytest
from running import ROOT

import nestgrad as ng
from nestgrad import pde
from nestgrad.func import vmap
from nestgrad.levels import Autodiff

TOLD = re.compile(r"^jit: (.+) in (\S+) ms in place of (\S+) ms, (\S+) times as fast; the first call took (\S+) s, traces: (\d+)$", re.M)

QUICK = {
    "burgers": ("--points 50 --steps 5 --tolerance 1", ["loss and gradient"]),
    "burgers_gauss_newton": ("--points 50 --steps 3 --tolerance 1 --no-compare", ["Jacobian"]),
    "kuramoto_sivashinsky": ("--features 200 --tolerance 0.1", ["Jacobian"]),
    "biharmonic_plate": ("--features 100 --points 15 --tolerance 0.1", ["biharmonic of all features"]),
    "poisson_ten_dimensions": ("--points 50 --steps 2 --tolerance 1", ["Jacobian"]),
    "mlp": ("", ["loss and gradient"]),
    "double_pendulum": ("", ["accelerations"]),
    "gru": ("", ["gradient of the penalty", "Hessian times vector"]),
}
"""Settings, and what is timed."""


@pytest.mark.parametrize(("name", "backend"), [*((name, None) for name in QUICK), ("burgers", "torch"), ("burgers_gauss_newton", "torch")])
def test_an_example_tells_what_a_single_trace_saves(name, backend, example, monkeypatch, capsys, tmp_path):
    if name == "gru" or backend:
        pytest.importorskip("torch", reason="the backend, or what the example compares with")
    settings, what = QUICK[name]
    arguments = settings.split()
    arguments += ["--backend", backend] if backend else []
    arguments += ["--out", str(tmp_path / "picture.png")] if name.startswith("burgers") else []
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--jit", *arguments])
    example(name).main()
    found = TOLD.findall(capsys.readouterr().out)
    assert [told[0] for told in found] == what
    for _, after, before, times, first, traces in found:
        quotient = float(before) / float(after)
        # both times are printed with three digits, which is 0.5 % each, and their quotient with one behind the point
        assert abs(float(times) - quotient) < 0.051 + 0.0101 * quotient
        assert float(after) > 0 and float(first) >= 0 and traces == "1"


def test_the_page_lists_what_is_timed():
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)\.py` \| (.+?) \|(?: \S+ m?s \|){2} \S+ \| \S+ s \|$", page, re.M)
    told = {(name, what) for name, (_, whats) in QUICK.items() for what in whats}
    assert {row for row in rows if row[0] != "speed_up"} == told


def test_without_the_option_nothing_is_told(example, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["poisson_ten_dimensions.py", "--points", "50", "--steps", "1", "--tolerance", "1"])
    example("poisson_ten_dimensions").main()
    assert "jit" not in capsys.readouterr().out


# Optimised programs round otherwise, and some steps enlarge that.
close = partial(np.testing.assert_allclose, rtol=1e-9)


def test_lbfgs_goes_the_same_way(example):
    burgers = example("burgers")
    S = Autodiff(Autodiff(Autodiff(ng.NumpyBackend())))
    evaluate, start = burgers.training(S, 0.05, 100, 1)
    jitted = ng.jit(evaluate)
    (theta, calls), (right, right_calls) = (burgers.solve(S, f, start, 10) for f in (jitted, evaluate))
    assert calls == right_calls == jitted.stats().calls
    assert jitted.stats().traces == 1
    assert abs(theta - start[0].numpy()).max() > 1e-3
    close(theta, right, atol=1e-9)


def test_levenberg_and_marquardt_go_the_same_way(example):
    gauss_newton, burgers = example("burgers_gauss_newton"), example("burgers")
    start = example("mlp").init(burgers.WIDTHS, np.random.default_rng(1))
    r, plain = (gauss_newton.Residuals(ng.NumpyBackend(), 0.05, 50, *wrap) for wrap in ((ng.jit,), ()))
    (*_, (_, theta)), (*_, (_, right)) = (gauss_newton.gauss_newton(of, start, 3) for of in (r, plain))
    assert {f.stats().traces for f in (r.values, r.rows, r.curvature)} == {1}
    close(r(theta) @ r(theta), plain(right) @ plain(right), rtol=1e-6)
    close(r.loss_and_gradient(theta)[1], plain.loss_and_gradient(theta)[1], atol=1e-10)
    assert r.slope.stats().calls == 1


def test_levenberg_and_marquardt_go_the_same_way_in_ten_dimensions(example):
    poisson = example("poisson_ten_dimensions")
    rng = np.random.default_rng(2)
    points, start = poisson.in_ball(60, rng), example("mlp").init(poisson.WIDTHS, rng)
    jitted = ng.jit(poisson.laplacians), ng.jit(poisson.rows)
    (*_, theta), (*_, right) = (islice(poisson.train(points, start, *functions), 3) for functions in (jitted, ()))
    assert [f.stats().traces for f in jitted] == [1, 1]
    assert abs(theta - start).max() > 1e-3
    close(theta, right, atol=1e-9)


def test_newton_finds_the_same_wave(example):
    kuramoto = example("kuramoto_sivashinsky")
    phi = kuramoto.features(60, 3)
    columns = kuramoto.terms_at_points(phi, 8)
    jitted = ng.jit(kuramoto.linearized)
    (w, steps), (right, right_steps) = (kuramoto.solve(phi, columns, 8, f, 3) for f in (jitted, kuramoto.linearized))
    assert steps == right_steps == jitted.stats().calls
    assert jitted.stats().traces == 1
    x, t = np.linspace(-9, 9, 20)[:, None], np.linspace(0, 2, 20)[:, None]
    basis = phi(ng.tensor(x), ng.tensor(t)).numpy()
    # the features are nearly dependent: coefficients may differ, the field may not
    close(basis @ w, basis @ right, rtol=1e-6, atol=1e-6)


def test_the_plate_bends_alike(example):
    plate = example("biharmonic_plate")
    middle = np.array([[0.0, 0.0], [0.2, 0.1]])
    for solve, power in ((plate.simply_supported, 1), (plate.clamped, 2)):
        phi = plate.features(60, power, 4)
        at = vmap(phi)(middle).numpy()
        close(at @ solve(phi, 10, ng.jit), at @ solve(phi, 10, lambda f: f), rtol=1e-6)
    close(ng.jit(pde.biharmonic(phi))(middle).numpy(), pde.biharmonic(phi)(middle).numpy(), rtol=1e-9, atol=1e-6)


def test_the_product_by_hand_is_that_of_differences(example):
    told = example("speed_up")
    x, v = np.random.default_rng(5).normal(size=(2, 6))

    def slope(x):
        inner = x[1:] - x[:-1] ** 2
        found = np.zeros_like(x)
        found[:-1] = -400 * x[:-1] * inner - 2 * (1 - x[:-1])
        found[1:] += 200 * inner
        return found

    h = 1e-5
    # 1e-10 of the third derivative, some thousands, and 1e-16 / h of gradients of some thousands
    close(told.product_by_hand(x, v), (slope(x + h * v) - slope(x - h * v)) / (2 * h), rtol=1e-6, atol=1e-5)
