"""What a Tensor tells about itself, and the ways out: explicit ones give constants, silent ones are refused."""

import copy
import math
import pickle

import numpy as np
import pytest

import nestgrad as ng
from nestgrad.errors import BackendError, ConversionError, DTypeError, MutatedError, ShapeError
from nestgrad.levels.coats import bare

DATA = [[0.5, 1.5], [2.5, 3.5]]


def tracked_and_marked(stack):
    """One entry, recorded; and one that was taken out of all levels that recorded it."""
    x = stack.tensor(2.0, requires_grad=True)
    marked = (x**3).wrt(x).wrt(x)
    assert marked.level == 0 and marked.marks
    return x * 1.0, marked


def test_facts(base):
    x = base.tensor(DATA)
    assert x.shape == (2, 2) and x.ndim == 2 and x.size == 4 and x.device == "cpu" and "float64" in str(x.dtype)
    assert base.tensor(1.0).shape == () and base.tensor(1.0).size == 1 and base.tensor(np.zeros((0, 3))).size == 0
    assert isinstance(x.shape, tuple)


def test_ways_out_are_open_on_every_level(stack):
    for x in tracked_and_marked(stack):
        value = float(x.numpy())
        assert x.item() == value and x.tolist() == value and f"{x:.2f}" == f"{value:.2f}"
    x = stack.tensor(DATA, requires_grad=True)
    np.testing.assert_array_equal(x.numpy(), DATA)
    assert x.tolist() == DATA and x[1, 0].item() == 2.5


def test_item_wants_one_entry(base):
    assert base.tensor([[3]]).item() == 3 and type(base.tensor(3).item()) is int and type(base.tensor(True).item()) is bool
    for wrong in (base.tensor([1.0, 2.0]), base.tensor([])):
        with pytest.raises(ShapeError, match="item: got shape"):
            wrong.item()


SILENT = {
    "float": (float, "item"), "int": (int, "item"), "complex": (complex, "item"), "exp": (math.exp, "item"),
    "asarray": (np.asarray, "numpy"), "array": (np.array, "numpy"), "list": (lambda x: np.array([x, x]), "numpy|item"),
    "float list": (lambda x: np.array([x, 1.0]), "numpy|item"),
}  # fmt: skip


@pytest.mark.parametrize(("leave", "way"), SILENT.values(), ids=SILENT)
def test_silent_ways_out_are_refused(leave, way, stack):
    for x in tracked_and_marked(stack):
        with pytest.raises(ConversionError, match=way):
            leave(x)
    constant = stack.tensor(2.0)
    leave(constant)


def test_an_array_takes_no_tracked_entry(stack):
    a = np.zeros(2)
    for x in tracked_and_marked(stack):
        with pytest.raises((ConversionError, ValueError)):  # NumPy puts an error of its own before ours
            a[0] = x
    np.testing.assert_array_equal(a, np.zeros(2))


def test_constants_become_numbers(base):
    x = base.tensor(2.5)
    assert float(x) == 2.5 and int(x) == 2 and complex(x) == 2.5 and math.exp(x) == math.exp(2.5)
    np.testing.assert_array_equal(np.asarray(base.tensor(DATA)), DATA)
    assert np.asarray(base.tensor(DATA), np.float32).dtype == np.float32
    assert [10, 20, 30][base.tensor(1)] == 20 and list(range(base.tensor(3))) == [0, 1, 2]
    with pytest.raises(ConversionError, match="index: got dtype"):
        [10, 20][base.tensor(1.0)]
    with pytest.raises(ValueError, match="copy"):
        np.array(x, copy=False)


def test_truth(stack):
    x = stack.tensor(2.0, requires_grad=True)
    assert bool(x > 1) and not x < 1 and (x * 3 if x > 0 else -x).wrt(x).item() == 3.0
    with pytest.raises(ShapeError, match=r"if x:.*\(2, 2\).*x\.any\(\) or x\.all\(\)"):
        bool(stack.tensor(DATA))
    with pytest.raises(ShapeError, match="exactly one"):
        bool(stack.tensor([]))
    assert bool(stack.tensor([[1.0]])) and not bool(stack.tensor([False]))


@pytest.mark.parametrize("name", ["sin", "exp", "sqrt", "absolute", "arctan"])
def test_functions_of_numpy_are_refused_by_name(name, stack):
    spelling = {"absolute": "abs", "arctan": "atan"}.get(name, name)
    for x in (stack.tensor(DATA), stack.tensor(DATA, requires_grad=True)):
        with pytest.raises(ConversionError, match=rf"np\.{name} of a Tensor.*ng\.{spelling}.*x\.{spelling}\(\)"):
            getattr(np, name)(x)
    with pytest.raises(ConversionError, match=r"np\.(linalg\.)?\w+.*ng\.concat"):
        np.concatenate([x, x])


def test_functions_of_torch_are_refused_by_name(stack):
    torch = pytest.importorskip("torch")
    with pytest.raises(ConversionError, match=r"torch\.sin of a Tensor.*ng\.sin"):
        torch.sin(stack.tensor(DATA, requires_grad=True))


def test_an_array_of_another_library_is_told_its_way_here_and_back():
    torch = pytest.importorskip("torch")
    with pytest.raises(ShapeError, match=r"Try .*for torch\.tensor\(x\), x\.numpy\(\)$"):  # torch looks into each entry, as into a list
        torch.tensor(ng.tensor([1.0, 2.0]))
    with pytest.raises(DTypeError, match=r"got a torch\.Tensor; expected .* array of numpy\. Try np\.asarray\(x\), a constant"):
        ng.tensor([1.0]) * torch.ones(1)
    assert (ng.tensor([1.0]) * np.asarray(torch.ones(1))).tolist() == [1.0]


FROM_TORCH = {
    "linalg.solve": (lambda torch, x: torch.linalg.solve(x, x), r"ng\.linalg\.solve\(\.\.\.\);"),
    "inverse": (lambda torch, x: torch.inverse(x), r"ng\.linalg\.inv\(\.\.\.\);"),
    "logdet": (lambda torch, x: torch.logdet(x), r"ng\.linalg\.slogdet\(x\)\[1\];"),
    "special.erf": (lambda torch, x: torch.special.erf(x), r"ng\.erf\(\.\.\.\) or x\.erf\(\);"),
    "special.expit": (lambda torch, x: torch.special.expit(x), r"ng\.sigmoid\(\.\.\.\)|ng\.nn\.sigmoid\(\.\.\.\);"),
    "linear": (lambda torch, x: torch.nn.functional.linear(x, x), r"ng\.nn\.linear\(\.\.\.\);"),
    "pad": (lambda torch, x: torch.nn.functional.pad(x, (1, 1)), r"ng\.nn\.pad\(\.\.\.\);"),
    "mse_loss": (lambda torch, x: torch.nn.functional.mse_loss(x, x), r"ng\.nn\.mse_loss\(\.\.\.\);"),
    "fft.fft": (lambda torch, x: torch.fft.fft(x), r"to write it with nestgrad's functions;"),
}


@pytest.mark.parametrize("name", FROM_TORCH)
def test_functions_of_torch_are_refused_with_what_takes_the_same_arguments(name):
    """``ng.linear`` and ``ng.pad`` would take others: those of torch's signature are in ``ng.nn``."""
    torch = pytest.importorskip("torch")
    call, way = FROM_TORCH[name]
    with pytest.raises(ConversionError, match=rf"^torch\.{name} of a Tensor: torch does not know its levels\. Try {way}"):
        call(torch, ng.tensor([[1.0, 2.0], [3.0, 4.0]]))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_pickling_keeps_value_dtype_and_backend(dtype, shape, base):
    x = base.tensor(np.arange(math.prod(shape)).reshape(shape), dtype=dtype)
    x * 1 if dtype != "bool" else ~x  # so that the backend has made its functions
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        y = pickle.loads(pickle.dumps(x, protocol))
        assert y.dtype == x.dtype and y.backend == x.backend and y.shape == x.shape
        np.testing.assert_array_equal(y.numpy(), x.numpy())


def test_pickling_drops_history(stack):
    x = stack.tensor(DATA, requires_grad=True)
    y = pickle.loads(pickle.dumps(x * 2))
    assert y.level == 0 and not y.marks and type(y) is ng.Tensor
    np.testing.assert_array_equal(y.numpy(), 2 * np.array(DATA))
    np.testing.assert_array_equal((x * y).wrt(x).numpy(), y.numpy())


def test_copies_keep_levels(stack):
    x = stack.tensor(DATA, requires_grad=True)
    y = x * 2
    for same in (copy.copy(y), copy.deepcopy(y), copy.deepcopy({"y": [y]})["y"][0]):
        np.testing.assert_array_equal(same.wrt(x).numpy(), np.full((2, 2), 2.0))


def test_backends_are_copied_without_what_they_made(base):
    base.tensor(1.0).sin()
    assert copy.deepcopy(base) == base and pickle.loads(pickle.dumps(base)) == base
    assert (copy.deepcopy(base).tensor(1.0) + base.tensor(1.0)).item() == 2.0


@pytest.mark.parametrize("take", [lambda x: x, lambda x: x.T, lambda x: x[0], lambda x: x.reshape(4), lambda x: x.broadcast_to((3, 2, 2)),
                                  lambda x: x.flatten(), lambda x: x.astype("float64"), lambda x: ng.einsum("ij->ji", x)])  # fmt: skip
def test_nothing_that_numpy_returns_leads_back(take, stack):
    """Writing into what ``numpy()`` and ``np.asarray`` give changes no Tensor and no derivative."""
    x = stack.tensor(DATA, requires_grad=True)
    y = (x * x).sum()
    for array in (take(x).numpy(), np.asarray(take(x.detach()))):
        assert array.flags.writeable
        array[...] = 99.0
    np.testing.assert_array_equal(x.numpy(), DATA)
    np.testing.assert_array_equal(y.wrt(x).numpy(), 2 * np.array(DATA))


def test_data_is_copied(base):
    array = np.array(DATA)
    tensors = [base.tensor(array), base.tensor(np.zeros((2, 2))) + array, ng.asarray(array), ng.where(True, array, base.tensor(0.0))]
    array[...] = 99.0
    for x in tensors:
        np.testing.assert_array_equal(x.numpy(), DATA)


def test_an_operand_is_copied_before_it_is_saved(stack):
    array = np.array([1.0, 2.0])
    x = stack.tensor([3.0, 4.0], requires_grad=True)
    y = x * array
    array[...] = 99.0
    np.testing.assert_array_equal(y.wrt(x).numpy(), [1.0, 2.0])


def test_an_index_is_copied_before_it_is_saved(stack):
    rows, mask = np.array([0, 1]), np.array([True, False])
    x = stack.tensor([3.0, 4.0], requires_grad=True)
    y, z = x[rows], x[mask]
    rows[...], mask[...] = 0, True
    np.testing.assert_array_equal(y.wrt(x).numpy(), [1.0, 1.0])
    np.testing.assert_array_equal(z.wrt(x).numpy(), [1.0, 0.0])


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.T, lambda x: x[0], lambda x: x[::-1], lambda x: x.reshape(4),
                                  lambda x: x.squeeze(), lambda x: x.astype("float64"), lambda x: x.sum(axis=()),
                                  lambda x: x.max(axis=()), lambda x: x.clamp(),
                                  lambda x: x**1, lambda x: ng.einsum("ij->ji", x), lambda x: ng.einsum("ii->i", x)])  # fmt: skip
def test_shared_memory_is_watched_through_views(view):
    array = np.array(DATA)
    x = ng.from_numpy(array)
    seen = view(x)
    out = seen.numpy()
    out[...] = 7.0
    np.testing.assert_array_equal(x.numpy(), DATA)
    assert not array.flags.writeable
    array.flags.writeable = True
    array[...] = 99.0
    reads = [x.numpy, x.tolist]
    if not np.array_equal(bare(seen.value), view(ng.tensor(DATA)).numpy()):  # else it was computed, in memory of its own
        reads.append(seen.numpy)
    for read in reads:
        with pytest.raises(MutatedError, match="written into"):
            read()
    if seen.numpy not in reads:
        np.testing.assert_array_equal(seen.numpy(), view(ng.tensor(DATA)).numpy())


def test_shared_memory_of_torch_is_watched():
    torch = pytest.importorskip("torch")
    array = torch.ones(3)
    S = ng.Autodiff(ng.TorchBackend())
    x = S.from_torch(array, requires_grad=True)
    y = (x * x).sum()
    seen = ng.from_torch(array)[1:]
    array += 1
    with pytest.raises(MutatedError):
        y.wrt(x)
    with pytest.raises(MutatedError):
        seen.numpy()


def test_repr_shows_value_dtype_and_levels(stack):
    x = stack.tensor([1.0, 2.0], requires_grad=True)
    assert repr(x) == "Tensor([1.0, 2.0], dtype=float64, levels=[1, 2])"
    assert repr(x.detach()) == "Tensor([1.0, 2.0], dtype=float64)"
    assert repr((x * x).wrt(x)) == "Tensor([2.0, 4.0], dtype=float64, levels=[1], taken_out_of=[2])"
    assert repr(x > 1) == "Tensor([False, True], dtype=bool)"
    assert "..." in repr(stack.tensor(np.zeros(10000))) and len(repr(stack.tensor(np.zeros((100, 100))))) < 1000
    assert str(x) == repr(x) == f"{x}"


def test_masked_entries_are_not_taken_for_numbers(base):
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    words = r"got a MaskedArray with 1 masked of 2 entries; expected a plain array, .* Try data.filled\(0.0\)"
    x = base.tensor([3.0, 4.0])
    for enter in (base.tensor, ng.from_numpy, lambda a: x * a, lambda a: ng.func.grad(lambda v: (x * v).sum())(a)):
        with pytest.raises(DTypeError, match=words):
            enter(masked)
        enter(np.ma.array([1.0, 2.0]))
    assert base.tensor(masked.filled(0.0)).tolist() == [1.0, 0.0]


@pytest.mark.filterwarnings("ignore")  # torch's, of what it may change
@pytest.mark.parametrize("make, words", [
    (lambda torch: torch.eye(2).to_sparse(), r"sparse_coo; expected a dense one, .* Try x.to_dense\(\)"),
    (lambda torch: torch.eye(2).to_sparse_csr(), r"sparse_csr; expected a dense one, .* Try x.to_dense\(\)"),
    (lambda torch: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), r"nested; .* Try torch.nested.to_padded_tensor"),
    (lambda torch: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), r"quantized; .* Try x.dequantize\(\)"),
])  # fmt: skip
def test_torch_tensors_that_are_not_dense_are_refused(make, words):
    torch = pytest.importorskip("torch")
    given, base = make(torch), ng.TorchBackend()
    for enter in (base.tensor, ng.from_torch, ng.func.grad(lambda x: (x * x).sum())):
        with pytest.raises(DTypeError, match=f"got a torch tensor that is {words}"):
            enter(given)


def test_complex_data_is_refused(base):
    for data in (1j, [1j, 2.0], np.array([1j]), np.complex64(1j)):
        with pytest.raises(DTypeError, match="complex"):
            base.tensor(data)
    with pytest.raises(DTypeError, match="complex"):
        base.tensor([1.0], dtype="complex128")
    with pytest.raises(DTypeError, match="complex"):
        base.tensor([1.0]).astype(complex)


def test_unusable_data_is_refused(base):
    for data in ("text", object(), [None], {"a": 1}, np.array(["a"]), 2**80):
        with pytest.raises((DTypeError, OverflowError)):
            base.tensor(data)
    with pytest.raises(ShapeError, match="ragged"):
        base.tensor([[1.0], [1.0, 2.0]])
    with pytest.raises(ConversionError, match="stack"):
        base.tensor([base.tensor(1.0), 2.0])


def test_sharing_is_for_arrays_of_the_library(base):
    with pytest.raises(BackendError, match="from_numpy: got a list"):
        base.from_numpy([1.0])
    with pytest.raises(BackendError, match="from_torch: got a ndarray"):
        base.from_torch(np.zeros(2))
