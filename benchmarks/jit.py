"""Compiled steps: ``nestgrad.jit`` on each executor, beside torch's autograd, ``torch.compile``, ``jax.jit`` and HIPS autograd.

The step of ``benchmarks/pinn.py``, and one of fourth order: the residual of the Kuramoto-Sivashinsky equation, as the example of that name
has it, and its gradients by all parameters. All in one process, in turn, by the processor's time; on two threads by the clock.
"""

import os
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

# before JAX is imported, which reads it once; on two processors it uses both nevertheless
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np

import nestgrad as ng
from benchmarks import pinn
from benchmarks.timing import best, interleaved, markdown, median, ratio
from nestgrad.errors import CompileWarning
from nestgrad.func import grad, jvp, taylor

SIZES = {(256, 32): 200, (4096, 64): 20, (16384, 128): 5}
"""(points, units): how often each step is run."""
FLAMES = (1024, 64, 30)
"""Points, units and repeats of the step of fourth order."""
LONG = 1000
"""How many ops to trace."""

Runs = dict[str, Callable[[], Any]]
TARGETS = {(256, 32): (0.45, 0.90), (4096, 64): (0.60, 0.70), (16384, 128): (0.75, 0.60)}


def jitted(f: Callable[..., Any], backend: Any, executor: str, arrays: Sequence[Any]) -> tuple[Callable[[], Any], float]:
    """A call of a function by an executor, and the seconds of its first one, which traces and compiles."""
    made, given = ng.jit(f, executor=executor), [backend.tensor(a) for a in arrays]
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error", CompileWarning)  # what runs op by op is not measured as compiled
        made(*given)
    return lambda: made(*given), time.perf_counter() - start


def step_on(backend: Any) -> Callable[..., list[Any]]:
    """nestgrad's step of ``benchmarks/pinn.py``, as a function of arrays."""
    stack = ng.Autodiff(ng.Autodiff(ng.Autodiff(backend)))
    return lambda x, *w: pinn.step(stack, x, list(w))


def torch_func_step(points: Any, weights: Sequence[Any]) -> Callable[[], Any]:
    """torch.func's step, by ``torch.compile``: derivatives are transforms, which it takes."""
    import torch

    def net(x: Any, p: Sequence[Any]) -> Any:
        for k in range(0, len(p) - 2, 2):
            x = torch.addmm(p[k + 1], x, p[k]).tanh()
        return torch.addmm(p[-1], x, p[-2])

    def loss(p: tuple[Any, ...], x: Any) -> Any:
        u_x = torch.func.grad(lambda z: net(z, p).sum())
        r = net(x, p) * u_x(x) - pinn.NU * torch.func.grad(lambda z: u_x(z).sum())(x)
        return (r * r).mean()

    compiled = torch.compile(torch.func.grad(loss), fullgraph=True, dynamic=False)
    return lambda: compiled(tuple(weights), points)


def jax_step(points: Any, weights: Sequence[Any]) -> Callable[[], Any]:
    """JAX's step."""
    import jax
    import jax.numpy as jnp

    def net(x: Any, p: Sequence[Any]) -> Any:
        for k in range(0, len(p) - 2, 2):
            x = jnp.tanh(x @ p[k] + p[k + 1])
        return x @ p[-2] + p[-1]

    def loss(p: Sequence[Any], x: Any) -> Any:
        u_x = jax.grad(lambda z: net(z, p).sum())
        r = net(x, p) * u_x(x) - pinn.NU * jax.grad(lambda z: u_x(z).sum())(x)
        return jnp.mean(r * r)

    compiled = jax.jit(jax.grad(loss))
    p, x = [jnp.asarray(w) for w in weights], jnp.asarray(points)
    return lambda: jax.block_until_ready(compiled(p, x))


def agree(runs: Runs, rtol: float = 5e-4) -> None:
    """Check that all sides computed the same."""
    first, *rest = ([a.numpy() if isinstance(a, ng.Tensor) else np.asarray(a) for a in run()] for run in runs.values())
    for other in rest:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-2 * rtol * abs(a).max())


def figures(
    runs: Runs, repeats: int, ours: Sequence[str], peers: Sequence[str], clock: Callable[[], float] = time.process_time
) -> list[str]:
    """Milliseconds of each, and our ratios to each peer."""
    agree(runs)
    times = interleaved(runs, repeats, 2, clock)
    return [
        *(f"{median(times[name]) * 1e3:.2f}" for name in runs),
        *(f"{ratio(times, name, peer):.2f}" for name in ours for peer in peers),
    ]


def torch_rows(threads: int) -> tuple[list[list[str]], list[list[str]]]:
    """The step on torch: times and ratios; seconds of the first calls."""
    import torch

    torch.set_num_threads(threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    rows, compiling = [], []
    backend = ng.get_backend("torch")
    for (n, units), repeats in SIZES.items():
        x, w = pinn.data(n, units)
        t_x, t_w = torch.tensor(x), [torch.tensor(a) for a in w]
        runs: Runs = {}
        seconds = {}
        for executor in ("torch.compile", "replay"):
            runs[executor], seconds[executor] = jitted(step_on(backend), backend, executor, [x, *w])
        runs["torch"] = lambda a=t_x, b=t_w: pinn.torch_step(a, b, True)
        if threads == 1:
            runs["torch.func"] = torch_func_step(t_x, t_w)
        runs["jax.jit"] = jax_step(x, w)
        for name in list(runs)[3:]:
            start = time.perf_counter()
            runs[name]()
            seconds[name] = time.perf_counter() - start
        if threads == 1:
            runs["products"] = pinn.products(x, w)
        floor = runs.pop("products", None)
        rows.append([f"{n} x {units}", *figures(runs, repeats, ("torch.compile", "replay"), list(runs)[2:], clock)])
        if floor is not None:
            alone = interleaved({"products": floor, "torch": runs["torch"]}, repeats, 2, clock)
            rows[-1].append(f"{ratio(alone, 'products', 'torch'):.2f}")
        compiling.append([f"{n} x {units}", *(f"{s:.1f}" for s in seconds.values())])
    torch.set_num_threads(1)
    return rows, compiling


def numpy_row() -> list[str]:
    """The smallest step on NumPy, against HIPS autograd and what is not compiled."""
    (n, units), repeats = next(iter(SIZES.items()))
    x, w = pinn.data(n, units)
    backend = ng.NumpyBackend("float32")
    step, theirs = step_on(backend), pinn.autograd_step(x)
    given = [backend.tensor(a) for a in (x, *w)]
    runs: Runs = {
        "numpy": jitted(step, backend, "numpy", [x, *w])[0],
        "eager": lambda: step(*given),
        "autograd": lambda: theirs(w),
    }
    return [f"{n} x {units}", *figures(runs, max(5, repeats // 4), ("numpy",), ("eager", "autograd"))]


def flames(x: Any, t: Any, *w: Any) -> Any:
    """The gradients by all parameters of the mean square of u_t + u u_x + u_xx + u_xxxx, as a user of nestgrad writes it."""

    def loss(p: tuple[Any, ...]) -> Any:
        def u(x: Any, t: Any) -> Any:
            h = ng.concat([x, t], axis=1)
            for k in range(0, len(p) - 2, 2):
                h = ng.linear(h, p[k], p[k + 1]).tanh()
            return ng.linear(h, p[-2], p[-1])

        c = taylor(lambda x: u(x, t), x, ng.ones_like(x), 4)
        _, u_t = jvp(lambda t: u(x, t), (t,), (ng.ones_like(t),))
        return ((u_t + c[0] * c[1] + 2 * c[2] + 24 * c[4]) ** 2).mean()

    return grad(loss)(w)


def torch_flames(points: Any, times: Any, weights: Sequence[Any]) -> list[Any]:
    """The same by torch's autograd."""
    import torch

    x, t = points.clone().requires_grad_(True), times.clone().requires_grad_(True)
    p = [w.clone().requires_grad_(True) for w in weights]
    h = torch.cat([x, t], 1)
    for k in range(0, len(p) - 2, 2):
        h = torch.addmm(p[k + 1], h, p[k]).tanh()
    u = torch.addmm(p[-1], h, p[-2])
    ones = torch.ones_like(u)
    u_x, u_t = torch.autograd.grad(u, (x, t), ones, create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x, x, ones, create_graph=True)
    (u_xxx,) = torch.autograd.grad(u_xx, x, ones, create_graph=True)
    (u_xxxx,) = torch.autograd.grad(u_xxx, x, ones, create_graph=True)
    r = u_t + u * u_x + u_xx + u_xxxx
    return list(torch.autograd.grad((r * r).mean(), p))


def flames_row() -> list[str]:
    """The step of fourth order."""
    import torch

    n, units, repeats = FLAMES
    x, w = pinn.data(n, units)
    rng = np.random.default_rng(1)
    t, w[0] = rng.uniform(0, 1, (n, 1)).astype("f4"), rng.normal(size=(2, units)).astype("f4")
    backend = ng.get_backend("torch")
    given = [backend.tensor(a) for a in (x, t, *w)]
    raw = [torch.tensor(a) for a in (x, t, *w)]
    run, seconds = jitted(flames, backend, "torch.compile", [x, t, *w])
    runs: Runs = {
        "torch.compile": run,
        "replay": jitted(flames, backend, "replay", [x, t, *w])[0],
        "eager": lambda: flames(*given),
        "torch": lambda: torch_flames(raw[0], raw[1], raw[2:]),
    }
    return [f"{n} x {units}", *figures(runs, repeats, ("torch.compile",), ("torch",)), f"{seconds:.1f}"]


def calls() -> list[list[str]]:
    """Microseconds of a call of a small function, and milliseconds of a trace, by executor."""
    rows, on_torch = [], ng.get_backend("torch")
    for backend, executor in ((ng.NumpyBackend(), "numpy"), (on_torch, "replay"), (on_torch, "torch.compile")):
        f, x = ng.jit(lambda x: x.sin() * x, executor=executor), backend.tensor(0.5)
        f(x)
        rows.append([f"{backend!r}, {executor}", f"{best(lambda f=f, x=x: f(x)) * 1e6:.1f}"])
    x = ng.tensor(0.5)

    def long(x: Any) -> Any:
        for _ in range(LONG // 2):
            x = (x * 1.01).sin()
        return x

    seconds = min(interleaved({"trace": lambda: ng.func.trace(long)(x)}, 9, 2, time.process_time)["trace"])
    return [*rows, [f"tracing {LONG:,} ops", f"{seconds * 1e6:,.0f}"]]


def report() -> str:
    """The tables."""
    one, compiling = torch_rows(1)
    two, _ = torch_rows(2)
    sides = ["`torch.compile`", "`replay`", "torch"]
    peers = ["torch", "torch.func", "jax.jit"]
    ratios = [f"{name} / {peer}" for name in ("`torch.compile`", "`replay`") for peer in peers]
    aims = ", ".join(f"{a:.2f} and {b:.2f}" for a, b in TARGETS.values())
    step = (
        f"The step of a physics-informed network on torch, milliseconds (targets of `torch.compile`: {aims} of torch and of jax.jit; "
        "of `replay` at 256 x 32: 0.65 of torch). torch.func is compiled by torch.compile. The floor is the matrix products alone:\n"
    )
    fourth = (
        "\nThe residual of the Kuramoto-Sivashinsky equation and its gradients by all parameters, milliseconds (target: 0.25 of "
        "torch):\n"
    )
    return "\n".join(
        [
            step,
            markdown(["points x units", *sides, "torch.func", "jax.jit", *ratios, "floor / torch"], one),
            "\nSeconds of the first call, which traces and compiles:\n",
            markdown(["points x units", *sides[:2], "torch.func", "jax.jit"], compiling),
            "\nOn two threads, by the clock. JAX has two in any case, and its time above is that of both together:\n",
            markdown(["points x units", *sides, "jax.jit", *(r for r in ratios if "func" not in r)], two),
            "\nOn NumPy, milliseconds (targets: 0.55 of what is not compiled, 0.17 of HIPS autograd):\n",
            markdown(["points x units", "`numpy`", "eager", "autograd", "`numpy` / eager", "`numpy` / autograd"], [numpy_row()]),
            fourth,
            markdown(["points x units", *sides[:2], "eager", "torch", "`torch.compile` / torch", "seconds to compile"], [flames_row()]),
            f"\nMicroseconds of a call of `x.sin() * x` on one number (target: 15), and of a trace (target: {50 * LONG:,}):\n",
            markdown(["what", "microseconds"], calls()),
        ]
    )


if __name__ == "__main__":
    print(report())
