"""heed in PyTorch: one call, and a model whose attention goes to heed.

    python examples/python_torch.py
"""

import torch
import torch.nn.functional as F

import heed.torch

q, k, v = torch.randn(3, 1, 12, 256, 64).unbind()
with torch.no_grad():
    mine = heed.torch.scaled_dot_product_attention(q, k, v, is_causal=True)
    theirs = F.scaled_dot_product_attention(q, k, v, is_causal=True)
print("largest difference", float((mine - theirs).abs().max()))


class SelfAttention(torch.nn.Module):
    """A model that calls PyTorch's function and knows nothing of heed."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


model, x = SelfAttention(768, 12), torch.randn(1, 256, 768)
with heed.torch.enable() as counts:
    with torch.no_grad():
        model(x)
    model(x).sum().backward()  # heed has no backward pass
print("who computed what:", dict(counts))
