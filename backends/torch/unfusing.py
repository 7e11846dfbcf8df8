"""What torch's compiler is told to undo. Imported when something is compiled, since it loads the compiler."""

from typing import Any

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass

_aten: Any = torch.ops.aten


class Unfused(CustomGraphPass):
    """On processors: products with a term added as a product, and a sum.

    The compiler joins them to ``addmm``, which copies the term into the answer before it multiplies. As a sum it is joined to what comes
    after the product, and costs nothing.
    """

    def __call__(self, graph: Any) -> None:
        """Take them apart."""
        for node in graph.find_nodes(op="call_function", target=_aten.addmm.default):
            if node.kwargs:  # other factors than 1
                continue
            term, x, y = node.args
            with graph.inserting_before(node):
                product = graph.call_function(_aten.mm.default, (x, y))
                total = graph.call_function(_aten.add.Tensor, (product, term))
            product.meta["val"] = total.meta["val"] = node.meta["val"]
            node.replace_all_uses_with(total)
            graph.erase_node(node)

    def uuid(self) -> str:
        """A name for what it does, by which the compiler knows its files again."""
        return "nestgrad.Unfused 1"
