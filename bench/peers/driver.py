"""What the drivers share: a small protocol over standard input and output, one JSON object a line.

A driver first says who it is: {"peer": "torch sdpa", "version": "2.6.0"}. One that cannot make
Problem.tensors() itself adds "wants": "tensors", and is told of a file with them. Then it answers each
    {"problem": "b1_hq12_hkv12_q1024_k1024_d64_causal_f32", "threads": 2, "tensors": "/tmp/tensors"}
with {"checksum": ...}, a number that agrees between peers, or {"refused": "why"}, and each
    {"seconds": 0.002}
with {"us": 812.5, "calls": 3}: microseconds of one of so many calls of that problem one after another,
as many as fill the time.
"""

import json
import re
import sys
import time

import numpy as np

PROBLEM = re.compile(r"b(\d+)_hq(\d+)_hkv(\d+)_q(\d+)_k(\d+)_d(\d+)(_causal)?_(f32|f16|bf16)$")


class Refused(Exception):
    """This peer does not compute that problem."""


class Problem:
    """Sizes of a problem string, and tensors of N(0, 1) numbers that every driver makes alike."""

    def __init__(self, text):
        match = PROBLEM.match(text)
        if not match:
            raise Refused(f"{text}: only plain and causal problems of one head width")
        self.batch, self.heads_q, self.heads_kv, self.len_q, self.len_k, self.dim = map(int, match.groups()[:6])
        self.causal, self.dtype = bool(match.group(7)), match.group(8)
        self.group = self.heads_q // self.heads_kv

    def tensors(self):
        """q, k, v as float32."""
        rng = np.random.default_rng(1)
        return [rng.standard_normal((self.batch, heads, length, self.dim), dtype=np.float32)
                for heads, length in ((self.heads_q, self.len_q), (self.heads_kv, self.len_k),
                                      (self.heads_kv, self.len_k))]


def serve(peer, version, make):
    """make(problem, threads) returns a call, which returns the output as a NumPy array of numbers."""

    def say(answer):
        print(json.dumps(answer), flush=True)

    say({"peer": peer, "version": version})
    call = None
    for line in sys.stdin:
        asked = json.loads(line)
        if "problem" in asked:
            try:
                call = make(Problem(asked["problem"]), asked["threads"])
                # Of rows that are the same whatever the layout: a sum over everything.
                out = np.asarray(call(), dtype=np.float64)
                say({"checksum": float(np.abs(out).sum())})
            except Refused as reason:
                call = None
                say({"refused": str(reason)})
            continue
        start = stop = time.perf_counter()
        calls = 0
        while calls == 0 or stop - start < asked["seconds"]:
            call()
            calls += 1
            stop = time.perf_counter()
        say({"us": (stop - start) / calls * 1e6, "calls": calls})
