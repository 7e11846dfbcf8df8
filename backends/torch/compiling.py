"""Torch's compiler for functions of raw arrays: what traces them, compiles them, and calls the result."""

import importlib.util
import warnings
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import torch

from nestgrad.backends.base import Backend

_lock = Lock()
"""The compiler has state of its own, and one program at a time is fast enough."""

_OPTIONS: dict[str, Any] = {
    "cpp_wrapper": True,  # a call costs a third of what it costs through Python, and there is one file to compile, not many
}

_AT_HAND = 1 << 17
"""Half a megabyte of single precision: a processor's second level."""


class Compiling(Backend):
    """Past torch.compile, which looks at Python code, and at each call at what the code depended on: the trace is at hand, and arguments
    are known to fit. So its compiler is asked directly, and a call costs a fraction.
    """

    default_device: torch.device

    def uncompilable(self) -> str:
        if importlib.util.find_spec("torch._inductor") is None:
            return "this build of torch has no compiler"
        if self.default_device.type == "cuda":
            return "" if importlib.util.find_spec("triton") else "torch's compiler needs triton for CUDA, which is not installed"
        if self.default_device.type != "cpu":
            return f"not tried on {self.default_device.type}"
        from torch._inductor.cpp_builder import get_cpp_compiler

        try:
            get_cpp_compiler()
        except Exception as error:
            return f"torch's compiler needs one for C++, and finds none: {str(error).splitlines()[0]}"
        return ""

    @property
    def at_hand(self) -> int | None:
        return _AT_HAND * torch.get_num_threads() if self.default_device.type == "cpu" else None

    def compiled(
        self, write: Callable[[Any], Callable[..., tuple[Any, ...]]], inputs: Sequence[tuple[tuple[int, ...], Any]]
    ) -> Callable[..., tuple[Any, ...] | None]:
        with _lock, warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # of torch about itself
            from torch._inductor import config
            from torch._inductor.compile_fx import compile_fx_inner

            from nestgrad.backends.torch.unfusing import Unfused

            graph, examples, ops = traced(self, write, inputs)
            options = _OPTIONS | ({"post_grad_custom_post_pass": Unfused()} if self.default_device.type == "cpu" else {})
            with config.patch(options):
                call: Any = compile_fx_inner(graph, examples, is_inference=True, cpp_wrapper=True)
        call = getattr(call, "current_callable", None) or call  # past what looks for profilers, which takes longer than a small program
        conditional, steps = bool(ops.conditions), ops.steps

        def run(*xs: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return tuple(call([x if x.is_contiguous() else x.contiguous() for x in xs]))

        def checked(*xs: torch.Tensor) -> tuple[torch.Tensor, ...] | None:
            *outs, right = run(*xs)
            return tuple(outs) if right else None

        found: Any = checked if conditional else run
        found.steps = steps  # held for as long as they may be called
        return found  # type: ignore[no-any-return]


def traced(backend: Any, write: Callable[[Any], Callable[..., tuple[Any, ...]]], inputs: Sequence[tuple[tuple[int, ...], Any]]) -> Any:
    """What the compiler is given.

    Args:
        backend: Where the function will run.
        write: From a backend to the function in its ops.
        inputs: The shape and the dtype of each argument.

    Returns:
        The function in torch's own ops, as a module that runs; examples of its arguments, without numbers; the backend that wrote it. If
        that has ``conditions``, one result is added: whether all of them hold.
    """
    import torch._inductor.compile_fx  # which must be there before functions are traced
    from torch._inductor.decomposition import select_decomp_table
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    from nestgrad.backends.torch.formulas import Formulas

    ops = Formulas(backend)
    written = write(ops)

    def conditioned(*xs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ops.conditions.clear()
        outs = written(*xs)
        return (*outs, torch.stack(ops.conditions).all()) if ops.conditions else outs

    with FakeTensorMode(allow_non_fake_inputs=True):
        examples = [torch.empty(shape, dtype=dtype, device=backend.default_device) for shape, dtype in inputs]
    trace = make_fx(torch.func.functionalize(conditioned), select_decomp_table(), _allow_non_fake_inputs=True)
    return trace(*examples), examples, ops
