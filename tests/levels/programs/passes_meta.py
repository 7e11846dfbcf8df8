"""D, continued: gradients through gradient steps, target networks, two players."""

import math

from nestgrad import Tensor, func
from nestgrad.levels.autodiff import Autodiff
from programs.case import BASE, NO_LEVEL_LEFT, d, right, stack, var
from programs.passes import RATE

LOST = r"only through a value that was taken out of .*one more Autodiff"


def meta(proximal: float = 0.0) -> tuple[float, float]:
    """(cos w - 0.1)^2 after two steps of size lr on (sin w - 0.2)^2 + p (w - w0)^2, by w0 and by lr: the tangents of the steps."""
    w0, lr = 0.5, 0.1
    w, by_w0, by_lr = w0, 1.0, 0.0
    for _ in range(2):
        g = 2 * (math.sin(w) - 0.2) * math.cos(w) + 2 * proximal * (w - w0)
        slope = 2 * math.cos(w) ** 2 - 2 * (math.sin(w) - 0.2) * math.sin(w) + 2 * proximal
        by_w0 = by_w0 - lr * (slope * by_w0 - 2 * proximal)
        by_lr = by_lr - lr * slope * by_lr - g
        w = w - lr * g
    outer = -2 * (math.cos(w) - 0.1) * math.sin(w)
    return outer * by_w0, outer * by_lr


@right(*meta())
def d20_meta_learning_everything_tracked_everywhere():
    s = stack(2)
    w0, lr = var(s, 0.5), var(s, 0.1)
    w = w0
    for _ in range(2):
        g = d((w.sin() - 0.2) ** 2, w)
        w = s.tensor(w.inner() - lr * g, requires_grad=True)
    grads = ((w.cos() - 0.1) ** 2).inner().backward()
    return w0.grad(grads), lr.grad(grads)


@right(meta(0.3)[0], may_raise=LOST)
def d21_proximal_term_meets_its_old_variable():
    s = stack(2)
    w0, lr = var(s, 0.5), var(s, 0.1)
    w = w0
    for _ in range(2):
        g = d((w.sin() - 0.2) ** 2 + 0.3 * (w - w0) ** 2, w)
        w = s.tensor(w.inner() - lr * g, requires_grad=True)
    return d(((w.cos() - 0.1) ** 2).inner(), w0)


@right(*meta(0.3))
def d22_proximal_term_detached_on_the_inner_problems_level():
    s = stack(2)
    w0, lr = var(s, 0.5), var(s, 0.1)
    w, anchor = w0, w0.detach(level=2)
    for _ in range(2):
        w = s.tensor(w.detach(level=2), requires_grad=True)
        g = d((w.sin() - 0.2) ** 2 + 0.3 * (w - anchor) ** 2, w)
        w = w.inner() - lr * g
    grads = ((w.cos() - 0.1) ** 2).backward()
    return w0.grad(grads), lr.grad(grads)


@right(*meta(0.3))
def d23_functional_inner_imperative_outer():
    s = stack(1)
    w0, lr = var(s, 0.5), var(s, 0.1)
    w = w0
    for _ in range(2):
        w = w - lr * func.grad(lambda v: (v.sin() - 0.2) ** 2 + 0.3 * (v - w0) ** 2)(w)
    grads = ((w.cos() - 0.1) ** 2).backward()
    return w0.grad(grads), lr.grad(grads)


@right(*meta(0.3))
def d24_imperative_inner_functional_outer():
    def outer(w0: Tensor, lr: Tensor) -> Tensor:
        w = w0
        for _ in range(2):
            t = Autodiff(w.backend).tensor(w, requires_grad=True)
            w = w - lr * d((t.sin() - 0.2) ** 2 + 0.3 * (t - w0) ** 2, t)
        return (w.cos() - 0.1) ** 2

    a, b = BASE.tensor(0.5), BASE.tensor(0.1)
    return func.grad(outer, 0)(a, b), func.grad(outer, 1)(a, b)


def averaged(seen: float) -> tuple[float, float]:
    """Three steps on (tanh w - sin T - 0.1)^2, T the moving average of the w's. ``seen``: how much of T, after the first step, is w."""
    w = target = 0.5
    inside = 0.0
    for _ in range(3):
        t = math.tanh(w)
        g = 2 * (t - math.sin(target) - 0.1) * (1 - t * t - inside * math.cos(target))
        w = w - RATE * g
        target, inside = 0.5 * target + 0.5 * w, seen
    return w, target


@right(*averaged(0.0))
def d26_target_network_moving_average():
    s = stack(2)
    w = var(s, 0.5)
    target = w.detach()
    for _ in range(3):
        r = w.tanh() - target.sin() - 0.1
        g = d(r * r, w)
        w = s.tensor((w - RATE * g).detach(), requires_grad=True)
        target = (0.5 * target + 0.5 * w).detach()
    return w.detach(), target


@right(*averaged(0.5))
def d27_target_network_no_detach_of_the_average():
    s = stack(2)
    w, target = var(s, 0.5), BASE.tensor(0.5)
    for _ in range(3):
        r = w.tanh() - target.sin() - 0.1
        g = d(r * r, w)
        w = s.tensor((w - RATE * g).detach(), requires_grad=True)
        target = 0.5 * target + 0.5 * w
    return w.detach(), target


def played() -> tuple[float, float]:
    """Two rounds: a descends sin^2(a b), then b descends cos^2(a b)."""
    a, b = 0.4, 0.6
    for _ in range(2):
        a -= RATE * b * math.sin(2 * a * b)
        b += RATE * a * math.sin(2 * a * b)
    return a, b


def play(detach: bool) -> tuple[Tensor, Tensor]:
    s = stack(1)
    a, b = var(s, 0.4), var(s, 0.6)
    for _ in range(2):
        a = a - RATE * d((a * b).sin() ** 2, a)
        a = var(s, a.detach() if detach else a)
        b = b - RATE * d((a * b).cos() ** 2, b)
        b = var(s, b.detach() if detach else b)
    return a.detach(), b.detach()


@right(*played(), may_raise=NO_LEVEL_LEFT)
def d29_two_players_no_detach():
    return play(detach=False)


@right(*played())
def d30_two_players_detach():
    return play(detach=True)


# w = 0.5 - lr g, g = 2 (sin 0.5 - 0.2) cos 0.5
G = 2 * (math.sin(0.5) - 0.2) * math.cos(0.5)


@right(2 * (math.cos(0.5 - 0.1 * G) - 0.1) * math.sin(0.5 - 0.1 * G) * G)
def d35_step_size_without_inner():
    s = stack(2)
    w, lr = var(s, 0.5), var(s, 0.1)
    w = w - lr * d((w.sin() - 0.2) ** 2, w)
    return d((w.cos() - 0.1) ** 2, lr)
