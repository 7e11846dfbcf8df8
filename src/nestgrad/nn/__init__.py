"""Functions of neural networks: ``ng.nn.conv2d``, losses, activations. Each module lists what it has for users in its own ``__all__``."""

# Not assigned: mypy would take a list that it cannot read for an empty one.
globals()["__all__"] = list[str]()
