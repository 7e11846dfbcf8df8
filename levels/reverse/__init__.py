"""Reverse mode: nodes, how they are recorded, and how cotangents flow back through them."""
