"""Tensors, NumPy arrays and torch tensors: results come back as what came in."""

import numpy as np
import pytest
import torch
from user_functions import ALL, SCALAR, VECTOR, inputs, leaves, mapped, numbers, same, tensors, theirs, torched, vector_for

import nestgrad as ng
from nestgrad import functional
from nestgrad.errors import ConversionError, FunctionalTypeError

KINDS = {"Tensor": (tensors, ng.Tensor), "NumPy": (lambda tree: tree, np.ndarray), "torch": (torched, torch.Tensor)}


def args_for(name, func, given, convert):
    return [] if name in ("jacobian", "hessian") else [convert(vector_for(name, func, given))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ALL)
def test_results_are_what_came_in(name, kind):
    convert, cls = KINDS[kind]
    func, shapes = SCALAR["inputs of other shapes"]
    given = inputs(shapes)
    found = getattr(functional, name)(func, convert(given), *args_for(name, func, given, convert))
    assert {type(x) for x in leaves(found)} == {cls}
    same(found, theirs(name, func, given, *args_for(name, func, given, lambda v: v)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ALL)
def test_the_function_gets_tensors(name, kind):
    seen = []

    def func(x):
        seen.append(type(x))
        return x.pow(3).sum()

    convert, _ = KINDS[kind]
    getattr(functional, name)(func, convert(numbers(2)), *([] if name in ("jacobian", "hessian", "vjp") else [convert(numbers(2))]))
    assert set(seen) == {ng.Tensor}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kind", ["NumPy", "torch"])
@pytest.mark.parametrize("name", ALL)
def test_dtypes_stay(name, kind, dtype):
    x = numbers(2).astype(dtype)
    x = torch.tensor(x) if kind == "torch" else x
    found = leaves(getattr(functional, name)(lambda x: (x * x).sum(), x, *([] if name in ("jacobian", "hessian", "vjp") else [x])))
    assert {y.dtype for y in found} == {x.dtype}
    if kind == "torch":
        assert {y.device for y in found} == {x.device} and not any(y.requires_grad for y in found)


def test_bfloat16_stays():
    x = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    assert functional.hessian(lambda x: (x * x).sum(), x).dtype == torch.bfloat16


@pytest.mark.gpu
def test_devices_stay():
    if not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    x = torch.tensor([1.0, 2.0], device="cuda")
    for name in ALL:
        found = getattr(functional, name)(lambda x: (x * x).sum(), x, *([] if name in ("jacobian", "hessian", "vjp") else [x]))
        assert {y.device for y in leaves(found)} == {x.device}


@pytest.mark.parametrize("kind", ["NumPy", "torch"])
def test_dtypes_may_differ(kind):
    convert = torched if kind == "torch" else lambda tree: tree
    x, y = convert(numbers(2).astype("float32")), convert(numbers(2, seed=1))
    h = functional.hessian(lambda x, y: (x * x * y).sum(), (x, y))
    assert [[b.dtype for b in row] for row in h] == [[x.dtype] * 2, [y.dtype] * 2]
    assert [b.dtype for b in functional.jacobian(lambda x, y: x * y, (x, y))] == [x.dtype, y.dtype]


def test_a_number_of_numpy_is_an_array():
    """``a[0]`` and ``np.float64(2)`` are arrays without axes; a Python float is none."""
    found = functional.hessian(lambda x: x.pow(3), np.float64(2.0))
    assert isinstance(found, np.ndarray) and found.shape == () and found == 12.0


@pytest.mark.parametrize("kind", ["NumPy", "torch"])  # nobody can write into a Tensor
def test_results_share_no_memory_with_what_came_in(kind):
    convert, _ = KINDS[kind]
    x, v = convert(numbers(2)), convert(numbers(2, seed=1))
    copy = lambda a: a.copy() if kind == "NumPy" else a.clone().numpy()
    before = copy(x), copy(v)
    for found in (functional.jvp(lambda x: x, x, v), functional.vjp(lambda x: x, x, v), (functional.jacobian(lambda x: x.detach(), x),)):
        for y in found:
            y[...] = 7.0  # also: they can be written into
    assert np.array_equal(before[0], copy(x)) and np.array_equal(before[1], copy(v))


def test_arrays_beside_tensors_give_tensors():
    b = ng.TorchBackend(dtype="float64")
    x, y = b.tensor(numbers(2)), numbers(2, seed=1)
    found = functional.hessian(lambda x, y: (x * x * y).sum(), (y, x))
    assert {type(block) for row in found for block in row} == {ng.Tensor} and {block.backend for row in found for block in row} == {b}
    same(mapped(lambda t: t.numpy(), found), theirs("hessian", lambda x, y: (x * x * y).sum(), (y, numbers(2))))


def test_arrays_of_two_libraries_are_refused():
    with pytest.raises(FunctionalTypeError, match=r"jacobian: got inputs of numpy and of torch; .* Try torch.from_numpy\(x\), or Tensors"):
        functional.jacobian(lambda x, y: x * y, (numbers(2), torch.tensor(numbers(2))))


def test_the_vector_may_be_of_another_kind():
    func = lambda x: x.pow(3).sum()
    x, v = numbers(2), numbers(2, seed=1)
    expected = theirs("hvp", func, x, v)
    same(functional.hvp(func, x, ng.tensor(v)), expected)
    same(functional.hvp(func, torch.tensor(x), v), expected)
    same(functional.hvp(func, ng.tensor(x), v), expected)
    assert isinstance(functional.hvp(func, torch.tensor(x), v)[1], torch.Tensor)


@pytest.mark.parametrize("name", ALL)
def test_what_torch_tracks(name):
    """Its graph cannot go on here. Without ``create_graph`` nobody asks for that."""
    x = torch.tensor(numbers(2), requires_grad=True)
    func = lambda x: x.pow(3).sum()
    args = [] if name in ("jacobian", "hessian", "vjp") else [torch.tensor(numbers(2))]
    found = getattr(functional, name)(func, x, *args)
    assert not any(y.requires_grad for y in leaves(found))
    same(found, getattr(torch.autograd.functional, name)(func, x.detach(), *args))
    with pytest.raises(ConversionError, match=rf"{name}: got a torch tensor that requires_grad with create_graph=True, .* Try x.detach"):
        getattr(functional, name)(func, x, *args, create_graph=True)
    same(getattr(functional, name)(func, x.detach(), *args, create_graph=True), found)


@pytest.mark.parametrize("kind", ["NumPy", "torch"])
@pytest.mark.parametrize("name", ALL)
def test_arrays_carry_no_levels(name, kind):
    """What closes over a variable gives a constant, or must give Tensors."""
    base = ng.TorchBackend(dtype="float64") if kind == "torch" else ng.NumpyBackend()
    w = ng.Autodiff(base).tensor(numbers(2), requires_grad=True)
    convert, cls = KINDS[kind]
    func = lambda x: (w * x * x).sum()
    args = [] if name in ("jacobian", "hessian", "vjp") else [convert(numbers(2))]
    x = convert(numbers(2, seed=1))
    assert {type(y) for y in leaves(getattr(functional, name)(func, x, *args))} == {cls}
    library = "torch" if kind == "torch" else "numpy"
    with pytest.raises(ConversionError, match=rf"{name}: the result is to depend on variables, .* {library} array cannot .* Try Tensors"):
        getattr(functional, name)(func, x, *args, create_graph=True)


def test_arrays_go_to_the_backend_of_what_the_function_closes_over():
    w = ng.TorchBackend(dtype="float64").tensor(numbers(2))
    found = functional.jacobian(lambda x: w * x, numbers(2))
    assert isinstance(found, np.ndarray) and np.array_equal(found, np.diag(w.numpy()))


@pytest.mark.parametrize("case", ["exp_reducer", "adder", "outputs of other shapes"])
def test_the_documented_functions_run_on_torchs_inputs_as_they_are(case):
    """The lines of the examples need no change but the import."""
    func, shapes = VECTOR[case]
    given = inputs(shapes)
    same(functional.jacobian(func, torched(given)), theirs("jacobian", func, given))
