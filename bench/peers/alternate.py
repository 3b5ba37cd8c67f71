#!/usr/bin/env python3
"""Times heed and another library in turns, each in a process of its own.

usage: bench/peers/alternate.py [--threads 1,2] [--rounds 15] [--json FILE] PEER [PROBLEM]...
  PEER     how to start a driver, e.g. "python3 bench/peers/torch_sdpa.py" or a built ggml_attention;
           driver.py has the protocol
  PROBLEM  problem strings (default: the standard core shapes in f32)

Rounds are peer, heed, heed, peer; the ratio is the median of heed's time over the peer's with its exact
95 % interval (sign test), and "inconclusive" where that interval holds 1. Nothing else may run meanwhile.
"""

import argparse
import json
import math
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

import driver

CORE = """b1_hq12_hkv12_q128_k128_d64_causal_f32 b1_hq12_hkv12_q1024_k1024_d64_causal_f32
b1_hq32_hkv8_q2048_k2048_d128_causal_f32 b1_hq4_hkv4_q8192_k8192_d64_causal_f32
b1_hq4_hkv4_q8192_k8192_d128_causal_f32 b8_hq12_hkv12_q197_k197_d64_f32 b2_hq8_hkv8_q4096_k77_d40_f32
b1_hq32_hkv8_q1_k4096_d128_f32 b16_hq32_hkv8_q1_k1024_d128_f32 b1_hq3_hkv3_q333_k333_d80_causal_f32
b1_hq8_hkv4_q1024_k1024_d256_causal_f32""".split()


class Driver:
    def __init__(self, command):
        # OpenMP threads that wait by spinning take the core that the other process's second thread wants
        # (PyTorch's, T 128, two threads: heed 0.63 of its time, not 0.37, and PyTorch itself no faster).
        environment = {"OMP_WAIT_POLICY": "passive", **os.environ}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        said = self.hear()
        self.peer, self.version = said["peer"], said["version"]
        self.wants_tensors = said.get("wants") == "tensors"

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"alternate.py: {shlex.join(self.process.args)} ended with {self.process.wait()}")
        return json.loads(line)

    def make(self, problem, threads):
        if not self.wants_tensors:
            return self.ask(problem=problem, threads=threads)
        with tempfile.NamedTemporaryFile() as file:
            try:
                for tensor in driver.Problem(problem).tensors():
                    tensor.tofile(file)
            except driver.Refused as reason:
                return {"refused": str(reason)}
            file.flush()
            return self.ask(problem=problem, threads=threads, tensors=file.name)

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return self.hear()


def median_interval(values, alpha=0.05):
    """Exact interval of the median by the sign test (Conover 1999, section 3.2); as tune/statistics.cc."""
    x, n, rank, tail = sorted(values), len(values), 0, 0.0
    while rank < n // 2 and 2 * (tail + math.comb(n, rank) / 2 ** n) <= alpha:
        tail += math.comb(n, rank) / 2 ** n
        rank += 1
    if rank == 0:
        return -math.inf, math.inf
    return x[rank - 1], x[n - rank]


def measure(heed, peer, problem, threads, rounds):
    answers = [side.make(problem, threads) for side in (heed, peer)]
    refused = [a["refused"] for a in answers if "refused" in a]
    if refused:
        return {"refused": refused[0]}
    sums = [a["checksum"] for a in answers]
    tolerance = 1e-4 if problem.endswith("f32") else 3e-2
    if not abs(sums[0] - sums[1]) <= tolerance * abs(sums[1]):
        sys.exit(f"alternate.py: {problem}: results differ, {sums}")
    logs, times = [], ([], [])
    for _ in range(rounds):
        order = [side.ask(seconds=0.002)["us"] for side in (peer, heed, heed, peer)]
        logs.append(math.log((order[1] + order[2]) / (order[0] + order[3])))
        times[0].extend(order[1:3])
        times[1].extend(order[::3])
    low, high = (math.exp(bound) for bound in median_interval(logs))
    return {"ratio": {"median": math.exp(statistics.median(logs)), "low": low, "high": high},
            "min_ratio": min(times[0]) / min(times[1]),
            "heed_us": statistics.median(times[0]), "peer_us": statistics.median(times[1]),
            "verdict": "inconclusive" if low <= 1 <= high else "faster" if high < 1 else "slower"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json")
    parser.add_argument("peer")
    parser.add_argument("problem", nargs="*", default=CORE)
    options = parser.parse_args()
    here = pathlib.Path(__file__).resolve().parent
    heed = Driver([sys.executable, str(here / "heed_attention.py")])
    peer = Driver(shlex.split(options.peer))
    rows = []
    print(f"heed {heed.version} against {peer.peer} {peer.version}\n\n"
          "| problem | threads | heed / peer | of the shortest | heed | peer | |\n|---|---|---|---|---|---|---|")
    for problem in options.problem:
        for threads in map(int, options.threads.split(",")):
            row = measure(heed, peer, problem, threads, options.rounds)
            rows.append({"problem": problem, "threads": threads, **row})
            if "refused" in row:
                print(f"| {problem} | {threads} | {row['refused']} | | | | |", flush=True)
                continue
            r = row["ratio"]
            print(f"| {problem} | {threads} | {r['median']:.3f} ({r['low']:.3f} to {r['high']:.3f}) | "
                  f"{row['min_ratio']:.3f} | {row['heed_us'] / 1e3:.3f} ms | {row['peer_us'] / 1e3:.3f} ms | "
                  f"{row['verdict']} |", flush=True)
    if options.json:
        data = {"schema": "heed-bench-peer", "schema_version": 1, "peer": peer.peer, "version": peer.version,
                "heed": heed.version, "rows": rows}
        pathlib.Path(options.json).write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
