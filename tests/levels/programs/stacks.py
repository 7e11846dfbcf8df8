"""H. Two stacks and threads; I. seeds; K. freed graphs."""

import math
import threading

import numpy as np

from nestgrad import Tensor, func
from nestgrad.errors import GraphFreedError, ShapeError
from programs.case import BASE, NO_LEVEL_LEFT, d, raises, right, stack, var
from programs.styles import squared_slope


@right(2.0, 2.0, 1.0)
def h01_two_stacks_over_one_base():
    x, y = var(stack(1), 1.0), var(stack(1), 2.0)
    u = x * y
    return u, d(u, x), d(u, y)


@right(12.0, 4.0)
def h03_gradient_of_one_stack_is_data_in_another():
    x, y = var(stack(1), 2.0), var(stack(1), 2.0)
    g = d(x**3, x)
    return g, d(g * y * y, y) / 12.0


@right(9 * 2.0**2, may_raise=NO_LEVEL_LEFT)  # (x 3x^2)'
def h04_and_back_again_through_the_other_stack():
    s, r = stack(1), stack(1)
    x = var(s, 2.0)
    y = r.tensor(d(x**3, x), requires_grad=True)
    return d(d(y * y * 0.5, y) * x, x)


def _work(i: int) -> float:
    """The sum over k of (u u_x)_w with u = sin(w x): with a = w x, (w sin(2a) / 2)_w = sin(2a)/2 + a cos(2a)."""
    a = [(1.0 + i) * (0.01 * (i + 1) + 0.001 * k) for k in range(60)]
    return sum(0.5 * math.sin(2 * b) + b * math.cos(2 * b) for b in a)


@right(*(_work(i) for i in range(4)))
def h06_one_stack_in_four_threads():
    s, out = stack(2), [0.0] * 4

    def work(i: int) -> None:
        for k in range(60):
            x, w = var(s, 0.01 * (i + 1) + 0.001 * k), var(s, 1.0 + i)
            u = (w * x).sin()
            out[i] += d(u * d(u, x), w).item()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out


@right(squared_slope())
def h07_a_thread_started_inside_a_transform():
    def loss(w: Tensor) -> Tensor:
        out: list[Tensor] = []

        def work() -> None:
            ux = func.grad(lambda x: (w * x).sin())(0.3)
            out.append(ux * ux)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return out[0]

    return func.grad(loss)(1.4)


@right(6.0, 6.0)
def i01_tracked_seed():
    s = stack(2)
    x, v = var(s, 3.0), var(s.inner, 1.0)
    g = x.grad((x * x).backward(gradient=v))
    return g, d(g, v)


@right(18 * 1.1**2)  # (2x 3x^2)'
def i02_marked_seed():
    x = var(stack(2), 1.1)
    ux = d(x**3, x)
    return d(x.grad((x * x).backward(gradient=ux)), x)


@right(2 * math.sin(1.1) + 2 * 1.1 * math.cos(1.1), may_raise=NO_LEVEL_LEFT)
def i04_same_with_one_level_is_not_half_right():
    x = var(stack(1), 1.1)
    return d(x.grad((x * x).backward(gradient=x.sin())), x)


@raises(ShapeError, match=r"gradient of shape \(\) for a root of shape \(3,\)")
def i05_wrong_shape():
    x = var(stack(1), np.ones(3))
    return (x * x).backward(gradient=BASE.tensor(1.0))


@raises(GraphFreedError, match="freed at 'sin'")
def k01_freed_graph():
    x = var(stack(1), 0.4)
    y = x.sin()
    assert abs(x.grad(y.backward(retain_graph=False)).item() - math.cos(0.4)) < 1e-12
    return d(y, x)
