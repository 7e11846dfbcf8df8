"""All partial derivatives up to an order, stored by what is there."""
