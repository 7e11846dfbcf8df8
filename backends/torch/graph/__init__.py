"""PyTorch's own graph: what it recorded, how it is shown, and which ops its nodes are."""
