"""All partial derivatives up to an order, stored by what is there; of our own graphs and of those that an array library has recorded."""

from nestgrad.partials.blocks import Block
from nestgrad.partials.controller import Controller, backward
from nestgrad.partials.hgrad import HGrad
from nestgrad.partials.structure import Leg

__all__ = ["Block", "Controller", "HGrad", "Leg", "backward"]
