#!/usr/bin/env python3
"""bench/summary.py on small made-up runs, in a copy of the little of the tree that it writes to.

usage: bench_summary.py ROOT
"""

import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
KEY = "maker-f1m2s3.avx2.l1d32k8.t2-12345678"
OTHER = "other-f1m2s3.avx3.l1d48k12.t8-87654321"
PROVENANCE = {"schema_version": 2, "date": "2031-02-03T04:05:06Z", "command": "heed_bench --made-up",
              "cpu": "Some CPU", "machine_key": KEY, "targets": "AVX2 SSE4", "threads": "2", "caches": "L1d",
              "version": "0.1.0", "commit": "abcdef012345", "compiler": "gcc 12.2.0", "highway": "1.0.3"}

README = """# heed
before
<!-- measured: begin (a table) -->
old numbers
<!-- measured: end -->
after
"""
INDEX = f"""# Results
<!-- machines: begin -->
| machine | best calls reach | and take | the machine was | run |
|---|---|---|---|---|
| Other CPU, 8 threads<br>`{OTHER}` | 1 % | 0.5 | quiet | [run](bench/other) |
| Some CPU, 2 threads<br>`{KEY}` | 2 % | 0.4 | quiet | [run](old) |
<!-- machines: end -->
after
"""


def table_row(shape, threads, median_us, kept):
    row = {"shape": shape, "problem": f"b1_{shape}", "threads": threads, "rounds_kept": kept,
           "rounds_dropped": 12 - kept, "median_us": median_us, "min_us": 100.0,
           "pct_peak": None if median_us is None else 60.4, "pct_peak_min_time": 70.6, "pct_bw": None,
           "pct_bw_min_time": None, "fma_peak_gflops": 100.0, "read_peak_gbs": None,
           "rounds": {"canary_before": [0.5 + i / 22 for i in range(12)]}}
    if shape == "decode":
        row.update(pct_bw=51.0, pct_bw_min_time=52.0, read_peak_gbs=20.0)
    else:
        row.update(pct_peak_tasks=None if threads == 2 else 77.8)
    return row


def pair_rows(difference, rounds=40, canary=1.0):
    """One row, in all of whose rounds the second equal call takes so much longer."""
    last = 100 * math.exp(difference)
    return [{"pair": "soft cap, D 64", "base": "b", "threads": 1, "rounds_kept": rounds, "rounds_dropped": 2,
             "ratio": {"median": 1.1, "low": 1.05, "high": 1.2}, "min_ratio": 1.08,
             "rounds": [[100, 110, 110, last, canary]] * rounds + [[100, 110, 110, 900, 0.9]] * 2}]


def peer_row(shape, threads, peer, us=None, **more):
    """heed takes 100 us at best, the peer `us`."""
    rounds = [[us + 7, 105, 100, us + 2, 1.0], [us, 120, 110, us + 9, 0.2]] if us else []
    return {"pair": f"{shape}: heed / {peer.split(' ')[0]}", "base": peer, "threads": threads,
            "rounds_kept": 9, "rounds_dropped": 0, "min_ratio": 0.5, "rounds": rounds, **more}


def engine_row(problem, min_ratio, verdict="faster"):
    return {"problem": problem, "threads": 1, "ratio": {"median": 0.9, "low": 0.8, "high": 0.95},
            "min_ratio": min_ratio, "heed_us": 1.0, "peer_us": 2.0, "verdict": verdict}


class Summary(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.run_folder = self.root / "results/bench" / KEY / "2031-02-03-abcdef012345"
        self.run_folder.mkdir(parents=True)
        (self.root / "bench").mkdir()
        shutil.copy(ROOT / "bench/summary.py", self.root / "bench")
        (self.root / "README.md").write_text(README)
        (self.root / "results/README.md").write_text(INDEX)
        self.write("table", [table_row("vit", 1, 123.4, 5), table_row("vit", 2, None, 0),
                             table_row("decode", 1, 4567.0, 12), table_row("decode", 2, 4000.0, 12)])
        for name in ("lengths", "caches", "peers"):
            self.write(name, [])
        self.write("stages", [], "provenance\n\nstages of a prompt\n")
        self.write("pairs", pair_rows(0.01))

    def write(self, name, rows, markdown="provenance\n\ntext\n"):
        (self.run_folder / f"{name}.json").write_text(json.dumps({**PROVENANCE, "rows": rows}))
        (self.run_folder / f"{name}.md").write_text(markdown)

    def remove(self, *names):
        for name in names:
            for end in ("json", "md"):
                (self.run_folder / f"{name}.{end}").unlink()

    def summarize(self, *options):
        command = [sys.executable, self.root / "bench/summary.py", *options, self.run_folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        path = self.run_folder / "summary.md"
        return path.read_text() if path.is_file() else ""

    def tree(self):
        return {path.relative_to(self.root).as_posix(): path.read_text()
                for path in self.root.rglob("*") if path.is_file()}

    def test_begins_with_the_machine(self):
        text = self.summarize()
        self.assertTrue(text.startswith("# Some CPU, 2031-02-03, commit abcdef012345\n"), text)
        self.assertIn(f"- machine_key: `{KEY}`\n", text)

    def test_shapes_have_medians_best_calls_and_shares(self):
        text = self.summarize()
        self.assertIn("| vit `b1_vit` | 123.4 us | 100.0 us | 60 (71; 78) | - | 100.0 us | (71) |", text)
        self.assertIn("| decode `b1_decode` | 4.57 ms | 100.0 us | 51 (52) of read | 4.00 ms |", text)

    def test_shares_are_of_the_largest_peak_of_the_run(self):
        low = table_row("long", 1, 123.4, 9)
        low["fma_peak_gflops"] = 80.0
        self.write("table", [table_row("vit", 1, 123.4, 9), low])
        text = self.summarize()
        self.assertIn("| vit `b1_vit` | 123.4 us | 100.0 us | 60 (71; 78) |", text)
        self.assertIn("| long `b1_long` | 123.4 us | 100.0 us | 48 (56; 62) |", text)
        self.assertIn("best calls reach 56 to 71 % of the FMA peak", text)

    def test_says_how_quiet_the_machine_was(self):
        text = self.summarize()
        self.assertIn("- rounds of the table that were quiet: 29 of 48; the canary at 54, 75 and 96 % of its "
                      "best", text)
        self.assertIn("differ by less than 1.0 % in 19 of 20 rounds, 1.0 % in half of them\n", text)

    def test_is_noisy_above_three_per_cent_and_not_below(self):
        for difference, noisy in ((0.029, False), (0.031, True), (-0.031, True), (0.2, True)):
            with self.subTest(difference=difference):
                self.write("pairs", pair_rows(difference))
                self.assertEqual("**noisy** (above 3 %)" in self.summarize(), noisy)

    def test_loud_rounds_do_not_make_it_noisy(self):
        self.write("pairs", pair_rows(0.01) + pair_rows(0.5, canary=0.9))
        self.assertNotIn("noisy", self.summarize())
        self.write("pairs", pair_rows(0.01) + pair_rows(0.5, canary=0.92))
        self.assertIn("noisy", self.summarize())

    def test_too_few_quiet_rounds_tell_nothing(self):
        self.write("pairs", pair_rows(0.5, rounds=5))
        text = self.summarize()
        self.assertIn("- A/A: not known, 5 quiet rounds of pairs are too few\n", text)
        self.assertNotIn("noisy", text)

    def test_says_which_parts_are_missing(self):
        self.assertNotIn("Not measured", self.summarize())
        self.remove("pairs", "stages", "peers")
        text = self.summarize()
        self.assertIn("\nNot measured: stages, pairs, peers (", text)
        self.assertIn("- A/A: not known, no pairs were measured\n", text)
        self.assertNotIn("## Where the time goes", text)
        self.assertNotIn("## Against other libraries", text)

    def test_a_folder_without_a_table_is_refused(self):
        self.remove("table")
        done = subprocess.run([sys.executable, self.root / "bench/summary.py", self.run_folder],
                              capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no table.json", done.stderr)

    def test_the_fastest_peer_counts_and_refusals_are_said(self):
        ratio = {"median": 0.5, "low": 0.4, "high": 0.6}
        self.write("peers", [
            peer_row("vit", 1, "openblas OpenBLAS 0.3.21 NO_LAPACKE Zen", 160, ratio=ratio),
            peer_row("vit", 1, "textbook 12.2.0", 400, ratio=ratio),
            peer_row("vit", 2, "textbook 12.2.0", 200, ratio=ratio),
            peer_row("vit", 2, "openblas OpenBLAS 0.3.21 NO_LAPACKE Zen", 80),
            peer_row("vit", 1, "onednn 2.6.3", refused="too old"),
            peer_row("vit", 2, "onednn 2.6.3", refused="too old")])
        text = self.summarize()
        self.assertIn("| vit | 1 | openblas OpenBLAS 0.3.21 | 0.62 | 0.500 (0.400 to 0.600) |\n", text)
        self.assertIn("| vit | 2 | openblas OpenBLAS 0.3.21 | 1.25 | no quiet round |\n", text)
        self.assertIn("- onednn 2.6.3: too old: vit (1), vit (2)\n", text)
        self.assertIn("- **against others:** 0.62 to 1.25 (half below 0.94) of the time of the fastest of "
                      "openblas, textbook, on 1 shapes\n", text)

    def engine(self, name, version, rows):
        (self.run_folder / f"engine_{name}.json").write_text(
            json.dumps({"peer": name, "version": version, "heed": "0.1.0", "rows": rows}))

    def test_the_fastest_engine_of_each_problem_counts(self):
        self.assertNotIn("engine", self.summarize())
        self.engine("ggml", "0.27.0", [engine_row("b1_q9_f32", 0.7), engine_row("b1_q9_f16", 0.3),
                                       {"problem": "b1_q9_bf16", "threads": 1, "refused": "no such thing"}])
        self.engine("torch", "2.14.1+debian", [engine_row("b1_q9_f32", 0.8, "slower"),
                                               engine_row("b1_q9_f16", 0.02)])
        text = self.summarize()
        self.assertIn("| `b1_q9_f32` | 1 | torch 2.14.1 | 0.80 | 0.900 (0.800 to 0.950) | slower |\n", text)
        self.assertIn("| `b1_q9_f16` | 1 | ggml 0.27.0 | 0.30 | 0.900 (0.800 to 0.950) | faster |\n", text)
        self.assertIn("- ggml: no such thing: b1_q9_bf16\n", text)
        self.assertIn("- **against others:** f32: 0.80 to 0.80 (half below 0.80) of the time of the fastest of "
                      "ggml, torch, on 1 shapes; f16: 0.30 to 0.30 (half below 0.30)", text)

    def test_the_machine_is_looked_at_before_and_once_after(self):
        self.assertEqual(self.summarize("--begin"), "")
        notes = self.run_folder / "environment.json"
        before = json.loads(notes.read_text())
        self.assertEqual(list(before), ["begin"])
        self.summarize()
        after = json.loads(notes.read_text())
        self.assertEqual(after["begin"], before["begin"])
        self.summarize()
        self.assertEqual(json.loads(notes.read_text()), after)
        before["begin"], after = ({"load": 1.5, "ticks": 1000, "stolen": 10},
                                  {"load": 2.5, "ticks": 2000, "stolen": 35})
        notes.write_text(json.dumps({"begin": before["begin"], "end": after}))
        self.assertIn("- load average before 1.5, after 2.5; stolen by other guests 2.5 % of the time; "
                      "frequency not readable\n", self.summarize())

    def test_summing_up_publishes_nothing(self):
        before = self.tree()
        self.summarize()
        after = self.tree()
        del after[(self.run_folder / "summary.md").relative_to(self.root).as_posix()]
        self.assertEqual(after, before)

    def test_publishing_changes_the_two_tables_and_nothing_else(self):
        before = self.tree()
        text = self.summarize("--publish")
        after = self.tree()
        changed = {name for name in after if after[name] != before.get(name)}
        summary = f"results/bench/{KEY}/2031-02-03-abcdef012345/summary.md"
        self.assertEqual(changed, {"README.md", "results/README.md", summary})

        block = re.fullmatch(r"# heed\nbefore\n<!-- measured: begin \(a table\) -->\n(.*)"
                             r"<!-- measured: end -->\nafter\n", after["README.md"], re.DOTALL)
        self.assertIsNotNone(block, after["README.md"])
        self.assertNotIn("old numbers", block.group(1))
        self.assertIn("On Some CPU, 2 threads, AVX2, gcc 12.2.0, commit abcdef012345:\n", block.group(1))
        self.assertIn(f"]({summary})", block.group(1))
        self.assertTrue(block.group(1).endswith(re.search(r"\| shape \|.*?\n\n", text, re.DOTALL).group()[:-1]))
        self.assertNotIn("noisy", block.group(1))

        mine = (f"| Some CPU, 2 threads<br>`{KEY}` | "
                "71 to 71 % of the FMA peak, 52 to 52 % of read bandwidth | not measured | A/A 1.0 % | "
                f"[2031-02-03, abcdef012345](bench/{KEY}/2031-02-03-abcdef012345/summary.md) |")
        lines = INDEX.splitlines()
        lines[5] = mine
        self.assertEqual(after["results/README.md"].splitlines(), lines)

    def test_publishing_twice_is_publishing_once(self):
        self.summarize("--publish")
        once = self.tree()
        self.summarize("--publish")
        self.assertEqual(self.tree(), once)

    def test_a_noisy_run_is_published_as_one(self):
        self.write("pairs", pair_rows(0.05))
        self.summarize("--publish")
        self.assertIn("| noisy: A/A 5.0 % | [2031", (self.root / "results/README.md").read_text())
        self.assertIn("**The machine was noisy**: equal calls in quiet rounds differ by up to 5 %",
                      (self.root / "README.md").read_text())


if __name__ == "__main__":
    unittest.main()
