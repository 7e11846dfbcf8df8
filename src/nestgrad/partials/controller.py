"""``backward`` and ``Controller``: all partial derivatives of a tensor up to an order, from the graph that was recorded under it."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from nestgrad.errors import ArgumentError, DTypeError, GraphFreedError, MissingPartial, MutatedError, RuleError
from nestgrad.partials import picture
from nestgrad.partials.arguments import checked_flags, checked_groups, checked_order, checked_seed
from nestgrad.partials.blocks import Block
from nestgrad.partials.computing import Call, computed
from nestgrad.partials.hgrad import HGrad, Metadata
from nestgrad.partials.hooks import refuse_dependent
from nestgrad.partials.keys import placed, wanted
from nestgrad.partials.kinds import source
from nestgrad.partials.showing import View, tree, view
from nestgrad.partials.source import Source, Wrap, told
from nestgrad.partials.ways import Key

Hook = Callable[[tuple[Any, Any, Any, Any], dict[Any, Any]], tuple[Any, Any, Any, Any]]
"""``hook((tensor, shapes, indeps, vperm), context)``: it returns four such things."""


class Controller:
    """All partial derivatives of a tensor, up to an order, by the leaves of its graph and by tensors inside of it.

    Args:
        tensor: On levels, or a ``torch.Tensor`` that requires gradients and has a ``grad_fn``. It may have any shape.

    Raises:
        ArgumentError: If it is something else.

    >>> import nestgrad as ng
    >>> x = ng.Autodiff(ng.NumpyBackend()).tensor([1.0, 2.0], requires_grad=True)
    >>> controller = ng.Controller((x**3).sum())
    >>> controller.backward(order=2)
    >>> x.hgrad[1].tolist()
    [[[6.0, 0.0], [0.0, 12.0]]]
    >>> x.hgrad
    HGrad(order 1: (1, 2), stored 2 of 2 numbers; order 2: (1, 2, 2), stored 2 of 4 numbers)
    """

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    # the graph

    @property
    def tensor(self) -> Any:
        """The output. Set to another one, what was computed or registered for the old one is forgotten; ``hgrad`` of its leaves stays.

        An ``index`` of one's own stays if the new one is of the same kind, a Tensor or a torch tensor.
        """
        return self._tensor

    @tensor.setter
    def tensor(self, tensor: Any) -> None:
        found = source(tensor)
        found.rooted(tensor)
        rules = self._index if hasattr(self, "_index") and type(found) is type(self._source) else None
        self._tensor = tensor
        self._source: Source = found
        self._index: dict[Any, Any] | None = rules
        self._hooks: dict[tuple[Hashable, ...], tuple[Hook, tuple[Any, ...]]] = {}
        self._retained: dict[tuple[Hashable, ...], None] = {}
        self._numbers: dict[Hashable, int] = {}
        self._set: dict[Hashable, HGrad] = {}
        self._wrap: Wrap = found.wrap
        self._blocks: dict[Key, Block] | None = None

    @property
    def index(self) -> dict[Any, Any]:
        """The rules for nodes of the graph: for a torch tensor by the type of ``grad_fn``, for a Tensor the op by its name.

        It is the controller's own: ``c.index[kind] = rule`` changes or adds one, and ``del c.index[kind]`` takes one away;
        ``c.index = None`` has the built-in ones again. What is set as a whole is checked at once, a single one when it is used.

        A rule for a node of torch is a function of the graph that is being written down, the node and its operands, and gives what
        ``graph.apply(op, *operands, **params)`` gives; or it is an op that ``nestgrad.define`` made, of as many arguments as the node has
        operands. A rule for a node of levels is an op that is called as the one of that name is.

        Raises:
            RuleError: If a rule is none.
            DTypeError: If it is set to no mapping.
        """
        if self._index is None:
            self._index = dict(self._source.index())
        return self._index

    @index.setter
    def index(self, rules: Mapping[Any, Any] | None) -> None:
        if rules is not None:
            if not isinstance(rules, Mapping):
                raise DTypeError(f"index: got {told(rules)}; expected a mapping of rules, as Controller.index gives")
            self._source.checked(rules)
        self._index = None if rules is None else dict(rules)

    @property
    def compatible(self) -> bool:
        """Whether all nodes of the graph have a rule, and are still there."""
        try:
            return not self._source.unsupported(self._tensor, self._rules)
        except (GraphFreedError, MutatedError, RuleError):
            return False

    # derivatives

    def backward(
        self,
        order: int,
        gradient: Any = None,
        crossings: bool = False,
        groups: Iterable[Iterable[Any]] | None = None,
        keep_batch: bool = False,
        keep_schwarz: bool = False,
        create_graph: bool = False,
    ) -> None:
        """Compute the partial derivatives, and set ``hgrad`` and ``hdata`` on every leaf; see ``nestgrad.backward``."""
        order = checked_order(order)
        checked_flags("backward", crossings=crossings, keep_batch=keep_batch, keep_schwarz=keep_schwarz, create_graph=create_graph)
        kind, tensor = self._source, self._tensor
        seed = checked_seed(kind, tensor, gradient, create_graph)
        inside = [key for keys in (*self._retained, *self._hooks) for key in keys]
        with kind.mode(create_graph):
            call = Call(kind, tensor, self._rules, inside, seed, create_graph)
            leaves, numbers = call.leaves, call.numbers
            chosen = checked_groups(kind, tensor, groups, crossings, leaves)
            more = [tuple(numbers[key] for key in keys) for keys in self._retained]
            keys = wanted(list(leaves.values()), order, chosen, keep_schwarz, more)
            hooks = {tuple(numbers[key] for key in names): found for names, found in self._hooks.items() if len(names) <= order}
            blocks = computed(call, keys, not keep_schwarz, hooks)
            wrap = kind.wrapping(tensor, gradient, create_graph)
        self._blocks, self._numbers, self._wrap = blocks, numbers, wrap
        self._set = {key: HGrad([blocks[(i,) * k] for k in range(1, order + 1)], wrap, keep_batch) for key, i in leaves.items()}
        for key, hgrad in self._set.items():
            kind.attach(key, hgrad)

    def fetch_hgrad(self, variables: Iterable[Any], keep_batch: bool = False, keep_schwarz: bool = False) -> tuple[Any, Metadata]:
        """One partial derivative.

        Args:
            variables: The tensors by which one differentiates, one for each order: leaves, and tensors inside that ``require_grad_`` has
                named, in any order.
            keep_batch: Whether independent axes are taken once; see ``Block.batched``.
            keep_schwarz: Whether the tensor is given as it is stored. ``vperm[k]`` then tells at which of its slots variable k is.

        Returns:
            The tensor, of shape ``(numel(output), *shape of variable 1, ..., *shape of variable k)``, and ``(shapes, indeps, vperm)``.

        Raises:
            MissingPartial: If it was not computed, which is a ``KeyError``; or nothing was, which is a ``RuntimeError``.
            ArgumentError: If a variable is none of the graph.
        """
        checked_flags("fetch_hgrad", keep_batch=keep_batch, keep_schwarz=keep_schwarz)
        tensors = self._listed("fetch_hgrad", variables)
        if self._blocks is None:
            raise MissingPartial("fetch_hgrad: got a call before backward; expected one after it. Try controller.backward(order) first")
        numbers = []
        for tensor in tensors:
            number = self._numbers.get(self._source.key("fetch_hgrad", self._tensor, tensor))
            if number is None:
                raise ArgumentError(
                    f"fetch_hgrad: Cannot find node of {told(tensor)}; expected a leaf of the graph, or one inside that "
                    "require_grad_ was called with before backward, because others are not kept. Try controller.require_grad_((x,)), then "
                    "controller.backward(order)"
                )
            numbers.append(number)
        found = placed(tuple(numbers), self._blocks)
        if found is None:
            raise MissingPartial(
                f"fetch_hgrad: No gradient saved for given key, ({', '.join(map(told, tensors))}); expected one that backward computed. "
                f"Try crossings=True, groups, an order of {len(numbers)} or more, or require_grad_ before backward"
            )
        key, slots = found
        block = self._blocks[key] if keep_schwarz else self._blocks[key].permuted(slots)
        shapes, indeps, straight = block.metadata(keep_batch)
        return self._wrap(block.batched()[0] if keep_batch else block.dense()), (shapes, indeps, slots if keep_schwarz else straight)

    def register_backward_hook(self, variables: Iterable[Any], hook: Hook) -> None:
        """Have the partial derivative by some variables changed once it is complete, before others are made of it.

        Args:
            variables: Leaves or tensors inside, none of which depends on another one. A second hook for the same ones, in whatever order,
                replaces the first.
            hook: Of ``(tensor, shapes, indeps, vperm)``, the tensor with independent axes once, and a context: by the node of each variable
                the set of these variables. It returns the four things, of which the tensor may have other numbers, and it flows on. What
                else it returns is an error of ``backward``. Hooks of torch, as ``register_hook`` takes them, are not run.

        Raises:
            ArgumentError: If a variable is none of the graph, or one depends on another.
            DTypeError: If the hook is no function, or the variables are no tuple of tensors.
        """
        if not callable(hook):
            raise DTypeError(f"register_backward_hook: got {told(hook)} as hook; expected a function. Try lambda data, context: data")
        tensors = tuple(self._listed("register_backward_hook", variables))
        keys = tuple(self._inside("register_backward_hook", tensors, apart=True))
        for known in [names for names in self._hooks if Counter(names) == Counter(keys)]:
            del self._hooks[known]
        self._hooks[keys] = hook, tensors

    def require_grad_(self, variables: Iterable[Any]) -> None:
        """Keep the partial derivative by some variables, leaves or tensors inside, for ``fetch_hgrad`` after the next ``backward``.

        Args:
            variables: One for each order: ``(u,)`` keeps the first derivative by ``u``, ``(u, x)`` the mixed second one.

        Raises:
            ArgumentError: If a variable is none of the graph.
            DTypeError: If the variables are no tuple of tensors.
        """
        self._retained[tuple(self._inside("require_grad_", self._listed("require_grad_", variables)))] = None

    def clear(self) -> None:
        """Delete ``hgrad`` and ``hdata`` of all leaves. What ``fetch_hgrad`` gives stays.

        Raises:
            MissingPartial: If there is nothing yet.
        """
        if self._blocks is None:
            raise MissingPartial("clear: got a call before backward; expected one after it. Try controller.backward(order) first")
        for key, hgrad in self._set.items():
            if self._source.attached(key) is hgrad:  # and not what another controller has set since
                self._source.attach(key, None)

    # seeing it

    def display_graph(self) -> None:
        """Print the graph as a tree. Nodes without a rule end in `` (not supported)``."""
        print(tree(self._view()))  # noqa: T201 - that is what it is for

    def to_dot(self) -> str:
        """The graph in the language of Graphviz."""
        return picture.to_dot(self._view())

    def to_mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        return picture.to_mermaid(self._view())

    def _repr_html_(self) -> str:
        return picture.html(self._view())

    def __repr__(self) -> str:
        done = "nothing computed" if self._blocks is None else f"{len(self._blocks)} partial derivatives"
        return f"<Controller of {told(self._tensor)}: {done}>"

    @property
    def _rules(self) -> Mapping[Any, Any]:
        return self._source.index() if self._index is None else self._source.checked(self._index)

    def _view(self) -> View:
        return view(self._tensor, self._source.supports(self._tensor, self._rules))

    def _listed(self, name: str, variables: Any) -> list[Any]:
        if self._source.array(variables) is not None or not isinstance(variables, Iterable):
            raise DTypeError(f"{name}: got {told(variables)} as variables; expected a tuple of tensors, one for each order. Try (x,)")
        found = list(variables)
        if not found:
            raise ArgumentError(f"{name}: got no variables; expected one for each order. Try (x,)")
        return found

    def _inside(self, name: str, tensors: Sequence[Any], apart: bool = False) -> list[Hashable]:
        found = []
        graph = Call(self._source, self._tensor, self._rules, (), None, False).graph
        for tensor in tensors:
            key = self._source.key(name, self._tensor, tensor)
            if key not in graph:
                raise ArgumentError(f"{name}: Cannot find node of {told(tensor)}; expected a leaf of the graph, or a tensor inside of it")
            found.append(key)
        if apart:
            refuse_dependent(name, graph, found, tensors)
        return found


def backward(
    tensor: Any,
    order: int,
    gradient: Any = None,
    crossings: bool = False,
    groups: Iterable[Iterable[Any]] | None = None,
    keep_batch: bool = False,
    keep_schwarz: bool = False,
    create_graph: bool = False,
) -> Controller:
    """All partial derivatives of a tensor up to an order, by every leaf of its graph.

    ``leaf.hgrad[k - 1]`` is the pure one of order k, of shape ``(numel(tensor), *leaf.shape, ..., *leaf.shape)``, made dense when it is
    read; ``leaf.hgrad.blocks[k - 1]`` holds what is stored, and ``leaf.hdata`` tells how to read it. Both are replaced by the next call.

    Args:
        tensor: On levels, or a ``torch.Tensor`` with a ``grad_fn``, of any shape. Its graph is read, and stays as it is.
        order: The highest order, from 1 on.
        gradient: A weight for each entry of ``tensor``, of its shape: derivatives of the weighted sum; the leading axis has size 1.
        crossings: Mixed partial derivatives by all leaves, too, for ``fetch_hgrad``.
        groups: Mixed ones by the leaves of each group. Groups are disjoint.
        keep_batch: ``hgrad`` takes independent axes once: shape ``(numel(tensor), one axis per independent axis, the remaining axes of the
            leaf once per order)``; an independent axis that the leaf does not have is of size 1. An axis of the leaf that has size 1 itself
            is among the remaining ones, since there is nothing to tell apart.
        keep_schwarz: Compute each order of differentiation by itself, where else one serves for all permutations. It shows rules that are
            not symmetric: of a key the last variable is differentiated by first.
        create_graph: The results can be differentiated further: by torch, for a torch tensor; on older levels, for a Tensor. They then hold
            the graph. Torch's holds its leaves, and these hold ``hgrad``, so that nothing of it goes before ``Controller.clear``.

    Returns:
        A controller, with ``fetch_hgrad`` for the mixed ones.

    Raises:
        ArgumentError, DTypeError, OrderError, ShapeError: Wrong arguments.
        UnsupportedNode: A node of the graph has no rule; all of them are named.
        GraphFreedError: A part of the graph was freed.
        MutatedError: An array that the graph holds was written into.

    Cost: a graph that comes again, with other numbers, is computed by a program that was recorded the first time. For a derivative of order
    k the program has forward mode by k - 1 variables and reverse mode by the last, or forward mode by all of them, whichever is less;
    entries along independent axes are computed at once.

    >>> import nestgrad as ng
    >>> x = ng.Autodiff(ng.NumpyBackend()).tensor([1.0, 2.0], requires_grad=True)
    >>> _ = ng.backward(x**2 * x, order=3)
    >>> x.hgrad[0].tolist(), x.hgrad.blocks[2].data.tolist()
    ([[3.0, 0.0], [0.0, 12.0]], [6.0, 6.0])
    """
    controller = Controller(tensor)
    controller.backward(order, gradient, crossings, groups, keep_batch, keep_schwarz, create_graph)
    return controller
