"""heed in Transformers: a small GPT-2 with random weights, generating.

    python examples/python_transformers.py
"""

import torch
import transformers

import heed.transformers

heed.transformers.register()
config = transformers.GPT2Config(
    n_layer=2, n_embd=128, n_head=4, vocab_size=500, bos_token_id=1, eos_token_id=2
)
model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="heed").eval()
x = torch.arange(3, 15)[None]
with torch.no_grad():
    maps = model(x, output_attentions=True).attentions
    text = model.generate(x, max_new_tokens=8, do_sample=False, pad_token_id=0)
print("maps", len(maps), tuple(maps[0].shape), "- rows sum to", float(maps[0].sum(-1).mean()))
print("generated", text[0, x.shape[1] :].tolist())
