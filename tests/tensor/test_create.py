"""Making Tensors: data, shapes, ranges and random numbers, with dtype, backend and device as asked."""

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import BackendError, ConversionError, DTypeError, LevelError, NestgradError, ShapeError


def test_tensor_takes_its_backend_from_the_data():
    torch = pytest.importorskip("torch")
    assert ng.tensor([1.0]).backend == ng.NumpyBackend()
    assert ng.tensor(np.ones(2, np.float32)).backend == ng.NumpyBackend()
    for dtype in (torch.float32, torch.float64):
        x = ng.tensor(torch.ones(2, dtype=dtype))
        assert x.backend == ng.TorchBackend(dtype=dtype) and x.dtype == dtype
    assert ng.tensor(ng.tensor(torch.ones(2))).backend.name == "torch"
    assert ng.tensor([1.0], backend="torch").backend == ng.TorchBackend()
    assert ng.tensor(torch.ones(2), backend="numpy").backend == ng.NumpyBackend()


def test_tensor_on_a_stack(stack):
    x = ng.tensor([1.0, 2.0], requires_grad=True, backend=stack)
    assert x.level == 2 and (x**3).wrt(x).wrt(x).tolist() == [6.0, 12.0]
    assert [t.number for t in ng.tensor(1.0, requires_grad=True, backend=stack, levels=[1]).tracked_on()] == [1]
    assert ng.tensor(1.0, backend=stack).level == 0


def test_requires_grad_needs_a_level():
    with pytest.raises(LevelError, match=r"tracks nothing.*Autodiff"):
        ng.tensor(1.0, requires_grad=True)
    with pytest.raises(LevelError, match=r"tracks nothing|constant on every level"):
        ng.tensor(ng.tensor(1.0), requires_grad=True)
    with pytest.raises(LevelError, match=r"levels without requires_grad"):
        ng.tensor(1.0, levels=[1])
    with pytest.raises(DTypeError, match=r"int64.*expected a floating one"):
        ng.tensor(1, requires_grad=True, backend=ng.Autodiff(ng.NumpyBackend()))
    with pytest.raises(BackendError, match=r"backend: got 7"):
        ng.tensor(1.0, backend=7)


def test_a_tensor_keeps_its_history(stack):
    x = stack.tensor(2.0, requires_grad=True)
    y = ng.tensor(x * x)
    assert y.wrt(x).item() == 4.0
    assert ng.asarray(y) is y
    again = ng.tensor(y, requires_grad=True)
    assert again.level == 2 and (again * again).wrt(again).item() == 8.0 and (again * again).wrt(x).item() == 32.0
    assert ng.tensor(x, dtype="float32").wrt(x).dtype == x.dtype


def test_data_of_every_kind(base):
    arrays = [np.arange(3), np.float32(1.5), [np.float64(1.0), 2.0], np.ones((2, 0))]
    for data in (1, 1.5, True, [1, 2], [[1.0], [2.0]], (1.0, 2.0), [], *arrays):
        x = ng.tensor(data, backend=base)
        np.testing.assert_array_equal(x.numpy(), np.asarray(data, float if np.size(data) == 0 else None))
    assert ng.tensor([1, 2]).dtype == np.int64 and ng.tensor([1.0, 2]).dtype == np.float64 and ng.tensor(True).dtype == np.bool_
    with pytest.raises(ConversionError, match=r"ng\.stack"):
        ng.tensor([ng.tensor(1.0), ng.tensor(2.0)])


DTYPES = ["float32", "float64", "int64", "int32", "bool", float, int, bool]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_by_name_and_type(dtype, base):
    want = {float: "float64", int: "int64", bool: "bool"}.get(dtype, dtype)
    shape = (2, 3)
    made = [
        ng.tensor(np.ones(shape), dtype=dtype, backend=base), ng.zeros(shape, dtype, base), ng.ones(shape, dtype=dtype, backend=base),
        ng.full(shape, 1, dtype, base), ng.eye(2, 3, dtype=dtype, backend=base), ng.zeros_like(base.tensor(np.ones(shape)), dtype),
        ng.ones_like(base.tensor(np.ones(shape)), dtype=dtype), ng.full_like(base.tensor(np.ones(shape)), 1, dtype),
        ng.asarray(np.ones(shape), dtype, base),
    ]  # fmt: skip
    for x in made:
        assert str(x.dtype).removeprefix("torch.") == want and x.shape == shape and x.backend == base and x.level == 0


def test_fillings(base):
    np.testing.assert_array_equal(ng.zeros((2, 3), backend=base).numpy(), np.zeros((2, 3)))
    np.testing.assert_array_equal(ng.ones(4, backend=base).numpy(), np.ones(4))
    np.testing.assert_array_equal(ng.full((), 2.5, backend=base).numpy(), 2.5)
    assert ng.full(2, 3, backend=base).tolist() == [3, 3] and ng.full(2, True, backend=base).tolist() == [True, True]
    assert ng.zeros((0, 2), backend=base).shape == (0, 2)
    for n, m, k in ((3, None, 0), (2, 4, 1), (4, 2, -1), (3, 3, 5), (0, 2, 0)):
        np.testing.assert_array_equal(ng.eye(n, m, k, backend=base).numpy(), np.eye(n, m, k))
    like = base.tensor([[1, 2]])
    assert ng.zeros_like(like).tolist() == [[0, 0]] and ng.full_like(like, 7).tolist() == [[7, 7]]
    assert ng.ones_like(like).dtype == like.dtype
    assert ng.ones_like(np.zeros(2, np.float32)).dtype == np.float32
    with pytest.raises(ShapeError, match=r"zeros|full: got shape \(-1,\)"):
        ng.zeros(-1)
    with pytest.raises(ShapeError, match=r"expected ints"):
        ng.zeros((1.5, 2))


def test_full_of_a_tensor_depends_on_it(stack):
    x = stack.tensor([1.0, 2.0], requires_grad=True)
    y = ng.full((3, 2), x)
    assert y.shape == (3, 2) and y.wrt(x).tolist() == [3.0, 3.0]


@pytest.mark.parametrize("args", [(5,), (2, 7), (7, 2, -1), (0.0, 1.0, 0.25), (5.0,), (3, 3), (5, 2), (-1.5, 1.5), (0, 10, 3)])
def test_arange(args, base):
    got, want = ng.arange(*args, backend=base), np.arange(*args)
    np.testing.assert_array_equal(got.numpy(), want)
    assert got.numpy().dtype == want.dtype
    assert ng.arange(*args, dtype="float32", backend=base).numpy().dtype == np.float32


def test_arange_of_numbers_that_are_no_python_ones(base):
    for args in ((np.int64(4),), (np.float32(1.0), 3), (ng.tensor(1), ng.tensor(4)), (ng.tensor(0.5), 2)):
        got = ng.arange(*args, backend=base)
        np.testing.assert_array_equal(got.numpy(), np.arange(*(a.item() if hasattr(a, "item") else a for a in args)))
    with pytest.raises(ConversionError, match=r"float\(x\)"):
        ng.arange(0, ng.Autodiff(base).tensor(3.0, requires_grad=True))


def test_arange_refuses_a_step_of_zero(base):
    with pytest.raises(NestgradError, match=r"arange: got step 0"):
        ng.arange(0, 3, 0, backend=base)


@pytest.mark.parametrize("num", [0, 1, 2, 3, 5, 50, 101])
@pytest.mark.parametrize(("start", "stop"), [(0.0, 1.0), (-1.0, 2.0), (1.0, -0.3), (0, 7), (0.1, 0.7), (2.0, 2.0), (1e-3, 1e3)])
def test_linspace(start, stop, num, base, single):
    for b, tolerance in ((base, 1e-15), (single, 2e-6)):
        got = ng.linspace(start, stop, num, backend=b)
        assert got.dtype == b.default_dtype
        # NumPy counts all points from the start, so it and we differ by a few roundings of the largest
        np.testing.assert_allclose(got.numpy(), np.linspace(start, stop, num), rtol=0, atol=tolerance * max(abs(start), abs(stop)))
        if num > 1:
            ends = b.to_numpy(b.asarray([float(start), float(stop)]))
            assert got.numpy()[0] == ends[0] and got.numpy()[-1] == ends[1]
            assert (np.diff(got.numpy()) * np.sign(stop - start) >= 0).all()


def test_linspace_depends_on_its_ends(stack):
    a, c = stack.tensor(1.0, requires_grad=True), stack.tensor(3.0, requires_grad=True)
    y = ng.linspace(a, c, 5)
    grads = (y * y).backward()
    t = np.linspace(0.0, 1.0, 5)
    np.testing.assert_allclose(grads.wrt(a).item(), (2 * (1 + 2 * t) * (1 - t)).sum(), rtol=1e-15)
    np.testing.assert_allclose(grads.wrt(c).item(), (2 * (1 + 2 * t) * t).sum(), rtol=1e-15)
    single = stack.tensor(1.0, requires_grad=True, dtype="float32")
    assert ng.linspace(single, 2.0, 3).dtype == single.dtype and ng.linspace(0, single, 1).tolist() == [0.0]
    with pytest.raises(ShapeError, match=r"linspace: got shape \(-1,\)"):
        ng.linspace(0.0, 1.0, -1)


def test_from_numpy_and_from_torch_choose_their_backend():
    array = np.arange(3.0, dtype=np.float32)
    x = ng.from_numpy(array)
    assert x.backend == ng.NumpyBackend() and x.dtype == np.float32 and not array.flags.writeable
    torch = pytest.importorskip("torch")
    native = torch.arange(3.0, dtype=torch.float64)
    y = ng.from_torch(native)
    assert y.backend == ng.TorchBackend(dtype="float64") and y.tolist() == [0.0, 1.0, 2.0]
    S = ng.Autodiff(ng.TorchBackend(dtype="float64"))
    z = ng.from_torch(native, requires_grad=True, backend=S)
    assert (z * z).wrt(z).tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(BackendError, match=r"from_torch: numpy cannot share"):
        ng.from_torch(native, backend="numpy")
    with pytest.raises(BackendError, match=r"from_numpy: torch cannot share"):
        ng.from_numpy(np.ones(2), backend="torch")


def test_devices():
    assert ng.zeros(2, device="cpu").backend == ng.NumpyBackend()
    pytest.importorskip("torch")
    assert ng.zeros(2, backend="torch", device="cpu").backend == ng.TorchBackend()
    double = ng.TorchBackend(dtype="float64")
    assert ng.zeros(2, backend=double, device="cpu").backend == double
    assert ng.eye(2, backend=ng.Autodiff(double), device="cpu").device == "cpu"
    with pytest.raises(BackendError, match=r"device: got 'cuda' for numpy"):
        ng.ones(2, backend="numpy", device="cuda")


@pytest.mark.gpu
def test_a_device_by_name_is_torchs():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    for x in (ng.zeros(2, device="cuda"), ng.arange(3, device="cuda:0"), ng.linspace(0.0, 1.0, 3, device="cuda"), ng.eye(2, device="cuda"),
              ng.random.normal(2, ng.random.generator(0, device="cuda")),
              ng.full(2, 1.0, backend=ng.TorchBackend(), device="cuda")):  # fmt: skip
        assert x.device == "cuda:0" and x.backend == ng.TorchBackend("cuda")


def test_the_same_seed_gives_the_same_numbers(base):
    def draw(seed):
        g = ng.random.generator(seed, base)
        return ng.random.normal((3, 2), g), ng.random.uniform((4,), g), ng.random.normal((3, 2), g)

    first, second, other = draw(7), draw(7), draw(8)
    for x, y in zip(first, second, strict=True):
        np.testing.assert_array_equal(x.numpy(), y.numpy())
    assert (first[0].numpy() != other[0].numpy()).all() and (first[0].numpy() != first[2].numpy()).all()


def test_random_numbers_have_their_moments(base, single):
    n = 200_000
    for b in (base, single):
        g = ng.random.generator(0, b)
        x, y, z = ng.random.normal(n, g), ng.random.uniform(n, g), ng.random.uniform((n,), g, -2.0, 3.0)
        assert x.dtype == y.dtype == z.dtype == b.default_dtype and x.shape == (n,) and x.level == 0
        # five standard deviations of a mean of n numbers; a variance of normal numbers has standard deviation sqrt(2 / n)
        assert abs(x.numpy().mean()) < 5 / n**0.5 and abs(x.numpy().var() - 1) < 5 * (2 / n) ** 0.5
        assert abs(y.numpy().mean() - 0.5) < 5 / (12 * n) ** 0.5 and y.numpy().min() >= 0 and y.numpy().max() < 1
        assert z.numpy().min() >= -2 and z.numpy().max() <= 3 and abs(z.numpy().mean() - 0.5) < 25 / (12 * n) ** 0.5
    assert ng.random.normal((), ng.random.generator(0, base)).shape == ()
    assert "float32" in str(ng.random.normal(2, ng.random.generator(0, base), dtype="float32").dtype)


def test_bounds_of_uniform_numbers_may_be_variables(stack):
    low = stack.tensor([0.0, 1.0], requires_grad=True)
    u = ng.random.uniform((3, 2), ng.random.generator(3, stack)).numpy()
    y = ng.random.uniform((3, 2), ng.random.generator(3, stack), low, 2.0)
    np.testing.assert_allclose(y.wrt(low).numpy(), (1 - u).sum(0), rtol=1e-15)


def test_random_numbers_need_a_generator():
    for wrong in (None, 3, np.random.default_rng(0)):
        with pytest.raises(BackendError, match=r"normal: .*ng\.random\.generator\(seed\)"):
            ng.random.normal((2,), wrong)
    with pytest.raises(ShapeError, match=r"uniform: got shape \(-2,\)"):
        ng.random.uniform(-2, ng.random.generator(0))
    assert repr(ng.random.generator(0)) == "Generator(numpy)"


@pytest.mark.parametrize("make", [ng.tensor, ng.asarray, ng.from_torch], ids=lambda f: f.__name__)
def test_what_torch_tracks_is_refused_not_cut(make):
    native = pytest.importorskip("torch").ones(2, requires_grad=True)
    with pytest.raises(ng.errors.ConversionError, match=r"requires_grad, and torch's autograd would lose track .* Try x\.detach\(\)"):
        make(native)
    assert make(native.detach()).tolist() == [1.0, 1.0]
