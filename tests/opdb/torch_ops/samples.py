"""The samples of torch's database of operations, in float64 on the CPU.

An operation is named as there, with the variant after a bar: ``"max|binary"``.
"""

import warnings
from functools import cache
from typing import Any

import torch


def key(info: Any) -> str:
    """The name of an operation, with its variant."""
    return f"{info.name}|{info.variant_test_name}" if info.variant_test_name else str(info.name)


@cache
def infos() -> dict[str, Any]:
    """All operations that take double precision. Importing the database takes seconds, so it is done on demand."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {key(info): info for info in op_db if torch.float64 in info.dtypes}


@cache
def names() -> dict[str, str]:
    """The last word of each name and of each alias in the database: ``{"softmax": "softmax|with_dtype"}``."""
    found = {}
    for k, info in infos().items():
        for name in (info.name, *(alias.name for alias in info.aliases)):
            found[name.rpartition(".")[2]] = k
    return found


@cache
def samples(name: str) -> list[Any]:
    """All samples of an operation, from a seed of its own. What is floating requires gradients, where torch has them."""
    info = infos()[name]
    torch.manual_seed(sum(name.encode()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(info.sample_inputs("cpu", torch.float64, requires_grad=info.supports_autograd))


def spread(name: str, count: int) -> list[int]:
    """The numbers of a few samples: the first, the last, and others evenly between them."""
    n = len(samples(name))
    if n <= count:
        return list(range(n))
    return sorted({round(k * (n - 1) / max(count - 1, 1)) for k in range(count)})
