"""Decoding ahead: while one matrix is multiplied for a long prompt, the next one is decoded on a second stream.

It changes when a matrix is decoded, never what it is multiplied by or with. Which matrix comes next is guessed from the
order of the model's modules, and learned where that guess is wrong. At most one matrix is decoded ahead on a GPU.
"""

import weakref
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from .runtime import runtime

LEAST_TOKENS = 512  # below it the host is what takes longest, and the events of two streams cost host time
MOST_BYTES = 256 << 20  # of a decoded matrix: beside the one that is multiplied, the next one takes this much more
NEAR = 16  # a product that comes this far before the one after it is the first of another forward pass


@dataclass(slots=True)
class Decoded:
    """A matrix on its way: `values` may be read, or let go, by work of `stream` that waits for `done`."""

    product: object  # a weak reference
    values: torch.Tensor
    done: object  # an event
    stream: object


class Ahead:
    """Of one GPU."""

    def __init__(self, index):
        self.index = index
        self.side = runtime.new_stream(index)
        self.decoded = []  # at most one; append and pop are atomic
        self.before = None  # a weak reference to the product that was multiplied last

    def multiply(self, product, x, bias):
        """F.linear with the product's decoded matrix; the matrix of the next product is decoded meanwhile."""
        current = runtime.current_stream(self.index)
        weight = self._take(product, current)
        if weight is None:
            weight = product.weight()
        self._learn(product)
        following = product.following and product.following()
        if following is None or not may_decode(following) or following.fused.get(x.numel() // product.cols):
            return F.linear(x, weight, bias)
        # Allocated, and ready to be written, before this product is queued: the decoding need not wait for it.
        values = torch.empty((following.rows, following.cols), dtype=torch.bfloat16, device=product.torch_device)
        ready = current.record_event()
        y = F.linear(x, weight, bias)
        self.side.wait_event(ready)
        following.unpack_to(values, self.side.cuda_stream)
        self.decoded.append(Decoded(weakref.ref(following), values, self.side.record_event(), current))
        return y

    def _take(self, product, current):
        try:
            found = self.decoded.pop()
        except IndexError:
            return None
        found.stream.wait_event(found.done)  # its memory is that stream's to reuse
        return found.values if found.product() is product and found.stream == current else None

    def _learn(self, product):
        before = self.before and self.before()
        self.before = weakref.ref(product)
        if before is not None and before.place - product.place < NEAR and before is not product:
            before.following = self.before


def may_decode(product):
    return 2 * product.rows * product.cols <= MOST_BYTES and not product.stored_by_inputs


def link(products):
    """Tells products of a model, in the order of its modules, which one comes next."""
    for place, (product, following) in enumerate(zip(products, [*products[1:], None], strict=False)):
        product.place = place
        near = following is not None and following.index == product.index
        product.following = weakref.ref(following) if near else None
