"""A small evaluator for the expressions of the case files: literals, names, arithmetic and calls of a given vocabulary."""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.MatMult: operator.matmul,
}


def evaluate(expression: str, names: Mapping[str, Any], call: Callable[..., Any]) -> Any:
    """The value of ``expression``: ``call(function, *args, **kwargs)`` answers each call of a name."""

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return names[node.id]
            case ast.List() | ast.Tuple():
                return [value(part) for part in node.elts]
            case ast.UnaryOp(op=ast.USub()):
                return -value(node.operand)
            case ast.BinOp() if type(node.op) in _BINARY:
                return _BINARY[type(node.op)](value(node.left), value(node.right))
            case ast.Call(func=ast.Name(id=function)):
                return call(function, *map(value, node.args), **{str(k.arg): value(k.value) for k in node.keywords})
        raise ValueError(f"{ast.unparse(node)!r} is not in the language of the cases")

    return value(ast.parse(expression, mode="eval").body)
