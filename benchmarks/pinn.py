"""One training step of a physics-informed network: u, u_x, u_xx, and the gradients of all parameters of the mean squared residual.

Three tanh layers, float32, one thread. nestgrad in the plain style, with everything tracked on three levels, against torch's autograd
with ``create_graph`` (with ``addmm`` or ``h @ W + b``, whichever is faster here), and on NumPy against HIPS autograd.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import nestgrad as ng
from benchmarks.timing import interleaved, markdown, median, ratio

SIZES = {(16, 8): 2000, (256, 32): 1000, (4096, 64): 80}
"""(points, units): how often each step is run."""
NU = 0.1
Arrays = list[np.ndarray[Any, Any]]


def step(stack: Any, points: Any, weights: list[Any]) -> list[Any]:
    """nestgrad's step, as a user writes it."""
    x = stack.tensor(points, requires_grad=True)
    p = [stack.tensor(w, requires_grad=True) for w in weights]
    h = x
    for k in range(0, len(p) - 2, 2):
        h = ng.linear(h, p[k], p[k + 1]).tanh()
    u = ng.linear(h, p[-2], p[-1])
    u_x = x.grad(u.backward())
    u_xx = x.grad(u_x.backward())
    r = u * u_x - NU * u_xx
    grads = (r * r).mean().backward()
    return [w.grad(grads) for w in p]


def torch_step(points: Any, weights: list[Any], addmm: bool) -> list[Any]:
    """torch's step."""
    import torch

    x = points.clone().requires_grad_(True)
    p = [w.clone().requires_grad_(True) for w in weights]
    h = x
    for k in range(0, len(p) - 2, 2):
        h = (torch.addmm(p[k + 1], h, p[k]) if addmm else h @ p[k] + p[k + 1]).tanh()
    u = torch.addmm(p[-1], h, p[-2]) if addmm else h @ p[-2] + p[-1]
    ones = torch.ones_like(u)
    (u_x,) = torch.autograd.grad(u, x, ones, create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x, x, ones, create_graph=True)
    r = u * u_x - NU * u_xx
    return list(torch.autograd.grad((r * r).mean(), p))


def autograd_step(points: Any) -> Callable[[Arrays], Arrays]:
    """HIPS autograd's step: a function of the parameters."""
    import autograd.numpy as anp
    from autograd import elementwise_grad, grad

    def loss(p: Any) -> Any:
        def u(x: Any) -> Any:
            h = x
            for k in range(0, len(p) - 2, 2):
                h = anp.tanh(anp.dot(h, p[k]) + p[k + 1])
            return anp.dot(h, p[-2]) + p[-1]

        u_x = elementwise_grad(u)
        r = u(points) * u_x(points) - NU * elementwise_grad(u_x)(points)
        return anp.mean(r * r)

    return grad(loss)  # type: ignore[no-any-return]


def data(points: int, units: int) -> tuple[np.ndarray[Any, Any], Arrays]:
    """Points and parameters."""
    rng = np.random.default_rng(0)
    sizes = [1, units, units, units, 1]
    weights: Arrays = []
    for n, m in pairwise(sizes):
        weights += [(rng.normal(size=(n, m)) / np.sqrt(n)).astype("f4"), np.zeros(m, "f4")]
    return rng.uniform(-1, 1, (points, 1)).astype("f4"), weights


def same(ours: list[Any], theirs: list[Any]) -> None:
    """Check that both sides computed the same."""
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), np.asarray(b), rtol=2e-4, atol=2e-6)


def products(points: np.ndarray[Any, Any], weights: Arrays) -> Callable[[], None]:
    """The matrix products of one step on torch, alone: the floor under any way to run it."""
    backend: Any = ng.get_backend("torch")
    calls: list[tuple[Any, tuple[Any, ...]]] = []

    def noted(call: Any, *args: Any) -> Any:
        calls.append((call, args))
        return call(*args)

    for name in ("linear", "matmul", "product"):
        setattr(backend, name, partial(noted, getattr(backend, name)))
    step(ng.Autodiff(ng.Autodiff(ng.Autodiff(backend))), backend.tensor(points), [backend.tensor(w) for w in weights])

    def run() -> None:
        for call, args in calls:
            call(*args)

    return run


def torch_rows() -> list[list[str]]:
    """Against torch."""
    import torch

    torch.set_num_threads(1)
    rows = []
    for (n, units), repeats in SIZES.items():
        x, w = data(n, units)
        backend = ng.get_backend("torch")
        stack = ng.Autodiff(ng.Autodiff(ng.Autodiff(backend)))
        points, weights = backend.tensor(x), [backend.tensor(a) for a in w]
        t_points, t_weights = torch.tensor(x), [torch.tensor(a) for a in w]
        sides = {
            "nestgrad": lambda s=stack, a=points, b=weights: step(s, a, b),
            "addmm": lambda a=t_points, b=t_weights: torch_step(a, b, True),
            "h @ W + b": lambda a=t_points, b=t_weights: torch_step(a, b, False),
        }
        same(sides["nestgrad"](), sides["addmm"]())
        # Only two take turns: a third that runs the same code as the second would find it warm.
        trial = interleaved({name: sides[name] for name in ("addmm", "h @ W + b")}, max(5, repeats // 4))
        rival = min(trial, key=lambda name: median(trial[name]))
        times = interleaved({"nestgrad": sides["nestgrad"], rival: sides[rival]}, repeats)
        floor = interleaved({"products": products(x, w), rival: sides[rival]}, max(5, repeats // 4))
        rows.append(
            [f"{n} x {units}", f"{median(times['nestgrad']) * 1e3:.2f}", f"{median(times[rival]) * 1e3:.2f} ({rival})",
             f"{ratio(times, 'nestgrad', rival):.2f}", f"{ratio(floor, 'products', rival):.2f}"]
        )
    return rows


def autograd_rows() -> list[list[str]]:
    """Against HIPS autograd, on NumPy."""
    rows = []
    for (n, units), repeats in SIZES.items():
        x, w = data(n, units)
        stack = ng.Autodiff(ng.Autodiff(ng.Autodiff(ng.NumpyBackend("float32"))))
        other = autograd_step(x)
        sides = {"nestgrad": lambda s=stack, a=x, b=w: step(s, a, b), "autograd": lambda f=other, b=w: f(b)}
        same(sides["nestgrad"](), sides["autograd"]())
        times = interleaved(sides, max(5, repeats // 5), 1)
        rows.append(
            [f"{n} x {units}", f"{median(times['nestgrad']) * 1e3:.2f}", f"{median(times['autograd']) * 1e3:.2f}",
             f"{ratio(times, 'nestgrad', 'autograd'):.2f}"]
        )
    return rows


def report() -> str:
    """Both tables."""
    head = ["points x units", "nestgrad, ms"]
    return "\n".join(
        [
            "Against torch's `create_graph` (target: 1.30, 1.20, 1.10 at most). The floor is the step's matrix products alone:\n",
            markdown([*head, "torch, ms", "ratio", "floor"], torch_rows()),
            "\nOn NumPy, against HIPS autograd (target: 0.25, 0.35, 0.60 at most):\n",
            markdown([*head, "autograd, ms", "ratio"], autograd_rows()),
        ]
    )


if __name__ == "__main__":
    print(report())
