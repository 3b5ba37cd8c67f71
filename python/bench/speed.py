"""PyTorch's and ONNX Runtime's attention against heed's, through Python, in one run.

    python python/bench/speed.py                     # everything, about an hour
    python python/bench/speed.py shapes --threads 2 --dtypes f32 --only gpt2_prefill,decode
    python python/bench/speed.py overhead model onnx

Every figure is the median over pairs: one call of each, in turns, so that what the
machine does besides falls on both. Results are checked before they are timed. Give
PyTorch its best BLAS first (OPENBLAS with OpenMP, or MKL); on a machine that does
something else these numbers mean little.
"""

import argparse
import os
import platform
import statistics
import time

import numpy as np

SHAPES = """
gpt2_short        1  12 12  128  128  64  1
gpt2_prefill      1  12 12  1024 1024 64  1
llama8b_prefill   1  32 8   2048 2048 128 1
long8k_d64        1  4  4   8192 8192 64  1
long8k_d128       1  4  4   8192 8192 128 1
vit               8  12 12  197  197  64  0
sd_cross          2  8  8   4096 77   40  0
decode            1  32 8   1    4096 128 0
decode_batch      16 32 8   1    1024 128 0
odd               1  3  3   333  333  80  1
gemma             1  8  4   1024 1024 256 1
"""


def pairs(theirs, mine, seconds, least):
    """Medians in seconds of each, and of the ratio theirs / mine, over pairs."""
    theirs(), mine()
    a, b, ratios = [], [], []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(ratios) < least:
        start = time.perf_counter()
        theirs()
        middle = time.perf_counter()
        mine()
        stop = time.perf_counter()
        a.append(middle - start)
        b.append(stop - middle)
        ratios.append(a[-1] / b[-1])
    return statistics.median(a), statistics.median(b), statistics.median(ratios), len(ratios)


def line(name, a, b, ratio, count):
    print(f"{name:44s} {a * 1e3:10.3f} ms {b * 1e3:10.3f} ms {ratio:7.2f}x  ({count} pairs)")


def heading(what, theirs):
    print(f"\n{what:44s} {theirs:>13s} {'heed':>13s}   ratio", flush=True)


def shapes(options):
    import torch
    import torch.nn.functional as F

    import heed.torch

    heading("F.scaled_dot_product_attention", "PyTorch")
    types = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
    for text in SHAPES.split("\n"):
        if not text:
            continue
        name, *numbers = text.split()
        if options.only and name not in options.only:
            continue
        b, hq, hkv, tq, tk, d, causal = map(int, numbers)
        for dtype in options.dtypes:
            q = torch.randn(b, hq, tq, d).to(types[dtype])
            k, v = (torch.randn(b, hkv, tk, d).to(types[dtype]) for _ in range(2))
            call = {"is_causal": bool(causal), "enable_gqa": hq != hkv}
            theirs = lambda: F.scaled_dot_product_attention(q, k, v, **call)  # noqa: E731
            mine = lambda: heed.torch.scaled_dot_product_attention(q, k, v, **call)  # noqa: E731
            bound = 1e-5 if dtype == "f32" else 5e-2
            torch.testing.assert_close(mine(), theirs(), atol=bound, rtol=bound)
            for threads in options.threads:
                torch.set_num_threads(threads)
                result = pairs(theirs, mine, options.seconds, options.pairs)
                line(f"{name} {dtype} t{threads}", *result)


def overhead(options):
    """What a call costs where there is nothing to compute."""
    import heed

    print("\ncall overhead, batch 1, 1 head, 1 token, dim 64: the least of 300 batches of 60")
    x = np.ones((1, 1, 1, 64), np.float32)
    out = np.empty_like(x)
    plan = heed.Plan("b1_hq1_hkv1_q1_k1_d64_f32")
    calls = {
        "heed.attention": lambda: heed.attention(x, x, x),
        "heed.attention(out=)": lambda: heed.attention(x, x, x, out=out),
        "heed.Plan.run(out=)": lambda: plan.run(x, x, x, out=out),
    }
    try:
        import torch
        import torch.nn.functional as F

        import heed.torch

        t = torch.ones(1, 1, 1, 64)
        torch.set_grad_enabled(False)
        calls["heed.torch"] = lambda: heed.torch.scaled_dot_product_attention(t, t, t)
        calls["F.scaled_dot_product_attention"] = lambda: F.scaled_dot_product_attention(t, t, t)
    except ImportError:
        print("no torch")
    for name, call in calls.items():
        best = float("inf")
        for _ in range(300):
            start = time.perf_counter()
            for _ in range(60):
                call()
            best = min(best, (time.perf_counter() - start) / 60)
        print(f"{name:44s} {best * 1e6:10.2f} us")


def model(options):
    """A GPT-2 small with random weights: a forward of 1024 tokens, and a token at a
    time behind them."""
    import torch
    import transformers

    import heed.transformers

    transformers.logging.set_verbosity_error()
    heed.transformers.register()
    torch.manual_seed(0)
    config = transformers.GPT2Config()
    gpt2 = transformers.AutoModelForCausalLM.from_config(config).eval()
    x = torch.randint(0, config.vocab_size, (1, 1024))
    heading("GPT-2 small, end to end", "sdpa")
    for threads in options.threads:
        torch.set_num_threads(threads)

        def forward(name):
            gpt2.set_attn_implementation(name)
            return gpt2(x, use_cache=False).logits

        caches = {}

        def decode(name, tokens=16):
            gpt2.set_attn_implementation(name)
            if name not in caches:
                caches[name] = gpt2(x[:, :960], use_cache=True).past_key_values
            cache = caches[name]
            for i in range(tokens):
                gpt2(x[:, 960 + i : 961 + i], past_key_values=cache)
            cache.crop(960)

        with torch.inference_mode():
            torch.testing.assert_close(forward("heed"), forward("sdpa"), atol=1e-3, rtol=1e-3)
            for what, run in (("forward of 1024", forward), ("16 tokens after 960", decode)):
                sdpa, heeds = lambda: run("sdpa"), lambda: run("heed")  # noqa: E731
                result = pairs(sdpa, heeds, 5 * options.seconds, options.pairs)
                line(f"{what} f32 t{threads}", *result)


def onnx(options):
    """A layer of decoding with grouped heads: GroupQueryAttention, and rewritten."""
    import onnx
    import onnxruntime

    import heed.onnx

    batch, heads, heads_kv, dim, past = 1, 32, 8, 128, 4096
    rng = np.random.default_rng(0)
    inputs = {
        "query": (batch, 1, heads * dim), "key": (batch, 1, heads_kv * dim),
        "value": (batch, 1, heads_kv * dim), "past_key": (batch, heads_kv, past, dim),
        "past_value": (batch, heads_kv, past, dim),
    }  # fmt: skip
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in inputs.items()}
    # The cache is one buffer, its last key the new token's.
    inputs["seqlens_k"] = np.array([past - 1] * batch, np.int32)
    inputs["total"] = np.array(past, np.int32)
    helper, element = onnx.helper, onnx.TensorProto.FLOAT
    node = helper.make_node(
        "GroupQueryAttention", list(inputs), ["y", "present_key", "present_value"],
        domain="com.microsoft", num_heads=heads, kv_num_heads=heads_kv,
    )  # fmt: skip
    made = helper.make_model(
        helper.make_graph(
            [node], "layer",
            [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
             for n, x in inputs.items()],
            [helper.make_tensor_value_info(n, element, None)
             for n in ("y", "present_key", "present_value")],
        ),
        opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)],
        ir_version=10,
    )  # fmt: skip
    heading("ONNX Runtime, decode 32/8 heads, 4096 keys", "its own")
    for threads in options.threads:
        runs = []
        for rewritten in (False, True):
            copy = onnx.ModelProto()
            copy.CopyFrom(made)
            session_options = onnxruntime.SessionOptions()
            session_options.intra_op_num_threads = threads
            if rewritten:
                heed.onnx.rewrite(copy)
                heed.onnx.session_options(session_options)
            session = onnxruntime.InferenceSession(copy.SerializeToString(), session_options)
            binding = session.io_binding()
            values = {n: onnxruntime.OrtValue.ortvalue_from_numpy(x) for n, x in inputs.items()}
            for name, x in values.items():
                binding.bind_ortvalue_input(name, x)
            binding.bind_output("y")
            # Past and present are one buffer, as a decoder runs it.
            binding.bind_ortvalue_output("present_key", values["past_key"])
            binding.bind_ortvalue_output("present_value", values["past_value"])
            runs.append(lambda s=session, b=binding: s.run_with_iobinding(b) or b)
        results = [run().copy_outputs_to_cpu()[0] for run in runs]
        np.testing.assert_allclose(results[1], results[0], atol=1e-5)
        line(f"GroupQueryAttention f32 t{threads}", *pairs(*runs, options.seconds, options.pairs))


PARTS = {"overhead": overhead, "shapes": shapes, "model": model, "onnx": onnx}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS) + "; all if none is named")
    parser.add_argument("--threads", type=lambda x: [int(n) for n in x.split(",")], default=[1, 2])
    parser.add_argument("--dtypes", type=lambda x: x.split(","), default=["f32", "bf16", "f16"])
    parser.add_argument("--only", type=lambda x: x.split(","), help="names of shapes")
    parser.add_argument("--seconds", type=float, default=4.0, help="of pairs for each figure")
    parser.add_argument("--pairs", type=int, default=5, help="of each figure, at least")
    options = parser.parse_args()
    unknown = set(options.parts) - PARTS.keys()
    if unknown:
        parser.error(f"no part is called {', '.join(sorted(unknown))}")

    import heed

    target = heed.info()["targets"][0]
    print(f"heed {heed.__version__}, {target}, Python {platform.python_version()}")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    try:
        import torch

        torch.set_grad_enabled(False)
        print(f"PyTorch {torch.__version__}, {torch.__config__.parallel_info().splitlines()[0]}")
    except ImportError:
        pass
    for name in options.parts or PARTS:
        PARTS[name](options)


if __name__ == "__main__":
    main()
