"""heed in PyTorch: one call, and a module whose attention goes to heed.

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

attention = torch.nn.MultiheadAttention(768, 12, batch_first=True).eval()
mask = torch.ones(256, 256).triu(1).bool()
x = torch.randn(1, 256, 768)
with torch.inference_mode(), heed.torch.enable() as counts:
    attention(x, x, x, attn_mask=mask, need_weights=False)
    F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)  # heed has no dropout
print("who computed what:", dict(counts))
