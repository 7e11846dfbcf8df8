"""Every option of every function gives what torch gives; strategy, mode and vectorize change only the cost."""

import itertools

import pytest
from user_functions import ALL, SCALAR, SECOND, VECTOR, inputs, same, tensors, theirs, vector_for

import nestgrad as ng
from nestgrad import functional

OPTIONS = {
    "jacobian": [{"strategy": s, "vectorize": v} for s, v in itertools.product(("reverse-mode", "forward-mode"), (False, True))],
    "hessian": [{"outer_jacobian_strategy": s, "vectorize": v} for s, v in itertools.product(("reverse-mode", "forward-mode"), (0, 1))],
    "jvp": [{"mode": m} for m in ("forward", "reversed")],
    "vjp": [{}], "hvp": [{}], "vhp": [{}],
}  # fmt: skip

CALLS = [
    (name, case, several)
    for name in ALL
    for case, (_, shapes) in (SCALAR if name in SECOND else VECTOR).items()
    for several in ((False, True) if len(shapes) == 1 else (True,))
]


@pytest.mark.parametrize("name,case,several", CALLS)
def test_every_combination_is_torchs(name, case, several):
    func, shapes = VECTOR[case]
    given = inputs(shapes, several)
    args = [] if name in ("jacobian", "hessian") else [vector_for(name, func, given)]
    expected = theirs(name, func, given, *args)
    for options in OPTIONS[name]:
        for create_graph in (False, True):
            found = getattr(functional, name)(func, tensors(given), *map(tensors, args), create_graph=create_graph, **options)
            same(found, expected)


STRICT = {"outputs mix": (lambda x, y: ((x * y).exp(), (x.sum() * y).sin()), ((2,), (2,))), "two inputs": SCALAR["two inputs"]}


@pytest.mark.parametrize("name,case", [(n, c) for n in ALL for c in STRICT if n not in SECOND or c == "two inputs"])
def test_strict_changes_no_number(name, case):
    func, shapes = STRICT[case]
    given = inputs(shapes)
    args = [] if name in ("jacobian", "hessian") else [vector_for(name, func, given)]
    expected = theirs(name, func, given, *args)
    for options in OPTIONS[name]:
        for create_graph in (False, True):
            call = getattr(functional, name)
            same(call(func, tensors(given), *map(tensors, args), create_graph=create_graph, strict=True, **options), expected)


def test_the_order_of_arguments_is_torchs():
    """As positional ones."""
    func, shapes = SCALAR["two inputs"]
    given = inputs(shapes)
    for name in ("jacobian", "hessian"):
        same(getattr(functional, name)(func, tensors(given), True, True, True, "forward-mode"), theirs(name, func, given))
    v = vector_for("hvp", func, given)
    for name in ("jvp", "hvp", "vhp"):
        same(getattr(functional, name)(func, tensors(given), tensors(v), True, True), theirs(name, func, given, v))
    one = vector_for("vjp", func, given)
    same(functional.vjp(func, tensors(given), tensors(one), True, True), theirs("vjp", func, given, one))


def test_row_by_row_runs_the_function_once_and_column_by_column_once_for_each():
    runs = []

    def func(x):
        runs.append(x)
        return x.exp().sum(dim=1)

    x = ng.tensor(inputs(((2, 3),)))
    forward = {"strategy": "forward-mode"}
    for options, n in [({}, 1), ({"vectorize": True}, 1), (forward, 6), ({**forward, "vectorize": True}, 1)]:
        runs.clear()
        functional.jacobian(func, x, **options)
        assert len(runs) == n
