"""Attention against a formula in fifty digits, derivatives of three orders included, and against PyTorch's."""

import math

import numpy as np
import pytest
import torch
from mpmath import mp

import nestgrad as ng
from nestgrad.errors import ArgumentError, DTypeError, LevelError, ShapeError
from nestgrad.func import call, grad, jvp, taylor, trace, vmap

BACKENDS = [ng.NumpyBackend(), ng.TorchBackend(dtype="float64")]
every_backend = pytest.mark.parametrize("base", BACKENDS, ids=repr)
RNG = np.random.default_rng(7)
Q, K, V = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 5, 4)), RNG.normal(size=(2, 5, 2))
ALLOWED = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 0, 1]], bool)
ADDED = np.where(ALLOWED, RNG.normal(size=(3, 5)), -np.inf)
attention = ng.nn.scaled_dot_product_attention
torchs = torch.nn.functional.scaled_dot_product_attention

CALLS = {
    "plain": {}, "causal": {"is_causal": True}, "scaled": {"scale": 0.3}, "no scale": {"scale": 0.0},
    "booleans": {"attn_mask": ALLOWED}, "numbers": {"attn_mask": ADDED}, "for each head": {"attn_mask": np.stack([ALLOWED, ~ALLOWED])},
    "one row": {"attn_mask": ALLOWED[2]}, "one column": {"attn_mask": ALLOWED[:, :1]},
    "both": {"attn_mask": ALLOWED, "is_causal": True}, "numbers and causal": {"attn_mask": ADDED, "is_causal": True},
}  # fmt: skip
every_call = pytest.mark.parametrize("name", CALLS)


def over(base, call):
    return {k: base.tensor(v) if isinstance(v, np.ndarray) else v for k, v in call.items()}


def mask_of(call):
    """What PyTorch's formula needs, where it documents no mask beside ``is_causal``."""
    mask, lower = call.get("attn_mask"), np.tril(np.ones((3, 5), bool))
    if mask is None or not call.get("is_causal"):
        return mask
    return mask & lower if mask.dtype == bool else np.where(lower, mask, -np.inf)


@every_backend
@every_call
def test_values_and_gradients_are_those_of_pytorch(name, base):
    call, mask = CALLS[name], mask_of(CALLS[name])
    variables = [torch.tensor(x, requires_grad=True) for x in (Q, K, V)]
    mask_there = None if mask is None else torch.tensor(np.atleast_2d(mask))
    y = torchs(*variables, mask_there, is_causal=bool(call.get("is_causal")) and mask is None, scale=call.get("scale"))
    c = RNG.normal(size=(2, 3, 2))
    want = torch.autograd.grad((y * torch.tensor(c)).sum(), variables)
    tensors = [base.tensor(x) for x in (Q, K, V)]
    f = lambda q, k, v: attention(q, k, v, **over(base, call))
    np.testing.assert_allclose(f(*tensors).numpy(), y.detach().numpy(), rtol=1e-12, atol=1e-14)
    found = grad(lambda *xs: (f(*xs) * base.tensor(c)).sum(), argnums=(0, 1, 2))(*tensors)
    for g, right in zip(found, want, strict=True):
        np.testing.assert_allclose(g.numpy(), right.numpy(), rtol=1e-11, atol=1e-13)


def in_digits(q, k, v, mask, scale):
    """Each answer, in numbers of mpmath; a row without keys is zeros."""
    out = []
    for i, row in enumerate(q):
        seen = [j for j in range(len(k)) if mask[i][j] != -mp.inf]
        weights = [mp.exp(scale * mp.fsum(a * b for a, b in zip(row, k[j], strict=True)) + mask[i][j]) for j in seen]
        total = mp.fsum(weights) if seen else 1
        out += [mp.fsum(w * v[j][m] for w, j in zip(weights, seen, strict=True)) / total for m in range(len(v[0]))]
    return out


@every_backend
def test_three_orders_are_those_of_the_formula_with_a_mask_that_moves_and_a_row_without_keys(base):
    rng = np.random.default_rng(1)
    point = [Q[0], K[0], V[0], np.where(ALLOWED, ADDED, 0.0)]
    direction = [rng.normal(size=x.shape) for x in point]
    c = rng.normal(size=(3, 2))
    with mp.workdps(50):

        def along(t):
            q, k, v, m = (
                [[mp.mpf(x) + t * mp.mpf(d) for x, d in zip(r, e, strict=True)] for r, e in zip(a, b, strict=True)]
                for a, b in zip(point, direction, strict=True)
            )
            m = [[x if ok else -mp.inf for x, ok in zip(r, a, strict=True)] for r, a in zip(m, ALLOWED, strict=True)]
            return mp.fsum(mp.mpf(w) * y for w, y in zip(c.ravel(), in_digits(q, k, v, m, mp.mpf("0.5")), strict=True))

        want = [float(x * mp.factorial(n)) for n, x in enumerate(mp.taylor(along, 0, 3))]

    def f(q, k, v, m):
        return (attention(q, k, v, ng.where(base.tensor(ALLOWED), m, -math.inf)) * base.tensor(c)).sum()

    def down(g):
        return lambda *xs: sum((d * x).sum() for d, x in zip(grad(g, argnums=(0, 1, 2, 3))(*xs), moves, strict=True))

    xs, moves = tuple(map(base.tensor, point)), tuple(map(base.tensor, direction))
    back, ahead = f, f
    for order in range(4):
        assert back(*xs).item() == pytest.approx(want[order], rel=1e-11)
        assert ahead(*xs).item() == pytest.approx(want[order], rel=1e-11)
        back, ahead = down(back), lambda *xs, g=ahead: jvp(g, xs, moves)[1]
    assert [x.item() * math.factorial(n) for n, x in enumerate(taylor(lambda a: f(*a), xs, moves, 3))] == pytest.approx(want, rel=1e-11)


@every_backend
def test_a_query_without_keys_gets_zeros_and_so_do_its_derivatives(base):
    q, k, v = (base.tensor(x) for x in (Q, K, V))
    for mask in (base.tensor(ALLOWED), base.tensor(ADDED)):
        f = lambda q, k, v, mask=mask: (attention(q, k, v, mask)[:, 1] ** 2).sum()
        assert f(q, k, v).item() == 0.0
        for g in grad(f, argnums=(0, 1, 2))(q, k, v):
            assert np.array_equal(g.numpy(), np.zeros(g.shape))
        twice = grad(lambda q, f=f: grad(lambda q: (q * q).sum() + f(q, k, v))(q).sum())(q)
        assert np.array_equal(twice.numpy(), np.full(Q.shape, 2.0))
    none = attention(q, k[:, :0], v[:, :0])
    assert np.array_equal(none.numpy(), np.zeros((2, 3, 2)))


@every_backend
def test_large_scores_stay_finite_to_third_order(base):
    q, k, v = base.tensor(1e4 * Q), base.tensor(1e4 * K), base.tensor(V)
    f = lambda q: attention(q, k, v, is_causal=True).sum()
    for _ in range(4):
        assert np.isfinite(f(q).numpy()).all()
        f = lambda q, g=f: (grad(g)(q) * q).sum()


@every_backend
def test_leading_axes_broadcast(base):
    q, k, v = base.tensor(Q[:, None]), base.tensor(K[0]), base.tensor(V)
    got = attention(q, k, v)
    assert got.shape == (2, 2, 3, 2)
    for i in range(2):
        for j in range(2):
            want = attention(base.tensor(Q[i]), k, base.tensor(V[j])).numpy()
            np.testing.assert_allclose(got.numpy()[i, j], want, rtol=1e-13)


@every_backend
@every_call
def test_a_batch_is_each_sample_by_itself_with_masks_that_differ(name, base):
    options = CALLS[name]
    q, k, v = (base.tensor(x) for x in (Q, K, V))
    mask = options.get("attn_mask")
    if mask is None or mask.ndim > 2:
        got = vmap(lambda q, k, v: attention(q, k, v, **({} if mask is not None else over(base, options))))(q, k, v)
        want = attention(q, k, v, **({} if mask is not None else over(base, options)))
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-13)
        return
    masks = np.stack([mask, mask[..., ::-1]])
    rest = {key: value for key, value in options.items() if key != "attn_mask"}
    got = vmap(lambda q, m: attention(q, k[0], v[0], m, **rest))(q, base.tensor(masks))
    shared = vmap(lambda m: attention(q, k, v, m, **rest))(base.tensor(masks))
    for n in range(2):
        want = attention(q[n], k[0], v[0], base.tensor(masks[n]), **rest)
        np.testing.assert_allclose(got[n].numpy(), want.numpy(), rtol=1e-13, atol=1e-15)
        want = attention(q, k, v, base.tensor(masks[n]), **rest)
        np.testing.assert_allclose(shared[n].numpy(), want.numpy(), rtol=1e-13, atol=1e-15)


@every_backend
def test_a_recorded_program_has_masks_of_its_later_runs(base):
    q, k, v = (base.tensor(x[0]) for x in (Q, K, V))
    program = trace(lambda q, m: attention(q, k, v, m > 0))(q, base.tensor(np.ones((3, 5))))
    for mask in (np.ones((3, 5)), np.where(ALLOWED, 1.0, -1.0)):
        got = call(program, q, base.tensor(mask)).numpy()
        np.testing.assert_allclose(got, attention(q, k, v, base.tensor(mask > 0)).numpy(), rtol=1e-13)


@every_backend
def test_queries_share_heads(base):
    q, k, v = RNG.normal(size=(2, 6, 3, 4)), RNG.normal(size=(2, 2, 5, 4)), RNG.normal(size=(2, 2, 5, 3))
    want = torchs(*map(torch.tensor, (q, k, v)), enable_gqa=True).numpy()
    np.testing.assert_allclose(attention(*map(base.tensor, (q, k, v)), enable_gqa=True).numpy(), want, rtol=1e-12)


@every_backend
def test_dropout_drops_weights_and_scales_the_others(base):
    q, k, v = base.tensor(Q), base.tensor(K), base.tensor(np.broadcast_to(np.eye(5), (2, 5, 5)))
    got = attention(q, k, v, ALLOWED, 0.4, generator=ng.random.generator(3, base)).numpy()
    full = attention(q, k, v, ALLOWED).numpy()
    kept = got != 0
    np.testing.assert_allclose(got[kept], full[kept] / 0.6, rtol=1e-12)
    assert 0 < kept.sum() < (full != 0).sum() and not got[:, 1].any()
    again = attention(q, k, v, ALLOWED, 0.4, generator=ng.random.generator(3, base)).numpy()
    np.testing.assert_array_equal(again, got)


@pytest.mark.parametrize("base", [ng.NumpyBackend("float32"), ng.TorchBackend()], ids=repr)
def test_the_dtype_is_the_querys(base):
    q, k, v = (base.tensor(x.astype("float32")) for x in (Q, K, V))
    for mask in (None, ALLOWED, ADDED):
        assert attention(q, k, v, mask).dtype == q.dtype
        assert grad(lambda q, mask=mask: attention(q, k, v, mask).sum())(q).dtype == q.dtype


REFUSALS = {
    "vectors": (lambda q, k, v: attention(q[0, 0], k, v), ShapeError, r"got query \(4,\), key \(2, 5, 4\) and value .*\(\.\.\., L, E\)"),
    "keys": (lambda q, k, v: attention(q, k[..., :3], v), ShapeError, r"key \(2, 5, 3\)"),
    "values": (lambda q, k, v: attention(q, k, v[:, :4]), ShapeError, r"value \(2, 4, 2\)"),
    "leading axes": (lambda q, k, v: attention(np.zeros((4, 3, 4)), k, v), ShapeError, "leading axes do not broadcast.*enable_gqa=True"),
    "a mask": (lambda q, k, v: attention(q, k, v, ALLOWED[:2]), ShapeError, r"got attn_mask of shape \(2, 5\).*broadcasts to \(2, 3, 5\)"),
    "a large mask": (lambda q, k, v: attention(q, k, v, np.ones((2, 2, 3, 5))), ShapeError, "got attn_mask"),
    "integers": (lambda q, k, v: attention(q, k, v, ALLOWED.astype(int)), DTypeError, "attn_mask of integers.*Try mask != 0"),
    "a chance": (lambda q, k, v: attention(q, k, v, dropout_p=1.5), ArgumentError, "got probability 1.5"),
    "no generator": (lambda q, k, v: attention(q, k, v, dropout_p=0.5), ArgumentError, "got no generator"),
    "not a multiple": (lambda q, k, v: attention(np.zeros((3, 3, 4)), k, v, enable_gqa=True), ShapeError, "a query has a multiple"),
    "backends": (lambda q, k, v: attention(q, ng.TorchBackend().tensor(K), v), LevelError, "different base backends"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_bad_input_is_named(name):
    f, error, text = REFUSALS[name]
    args = [ng.tensor(x) for x in (Q, K, V)]
    with pytest.raises(error, match=text):
        f(*args)


@pytest.mark.parametrize("base", [ng.NumpyBackend(), ng.TorchBackend(dtype="float64")], ids=repr)
@pytest.mark.parametrize("tracked", [False, True])
def test_nan_in_a_mask_is_nan_in_the_answer(base, tracked):
    """Not a row of which nothing is allowed."""
    S = ng.Autodiff(base)
    q, k, v = (S.tensor(np.eye(2), requires_grad=tracked) for _ in range(3))
    for row in ([0.0, np.nan], [np.nan, np.nan]):
        with np.errstate(invalid="ignore"):
            out = ng.nn.scaled_dot_product_attention(q, k, v, attn_mask=base.tensor([row, [0.0, 0.0]])).numpy()
        assert np.isnan(out[0]).all() and np.isfinite(out[1]).all()
