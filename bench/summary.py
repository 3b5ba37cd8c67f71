#!/usr/bin/env python3
"""Sums up one folder of results in summary.md, and publishes it.

usage: bench/summary.py [--begin | --publish] results/bench/<machine key>/<date>-<commit>

--begin    before measuring: notes the machine's load and stolen time in environment.json
(nothing)  after measuring: writes summary.md from the JSON in the folder
--publish  the same, and brings the tables of README.md and results/README.md up to date with it

Needs Python alone.
"""

import argparse
import json
import math
import os
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUIET = 1 / 1.1  # a canary below this share of its best drops a round
NOISY = 0.03  # two equal calls that differ by more, of one round in twenty, make results noisy
FEWEST = 20  # quiet rounds, to know one in twenty by
PARTS = ("lengths", "caches", "stages", "pairs", "peers")  # what suite.sh measures beside the table


def read(path):
    return json.loads(path.read_text()) if path.is_file() else None


def read_engines(folder):
    """What bench/peers/alternate.py --json measured, if it did."""
    return [read(path) for path in sorted(folder.glob("engine_*.json"))]


def machine_state():
    """What can be read of the machine's load; {} elsewhere than on Linux."""
    try:
        ticks = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        state = {"load": os.getloadavg()[0], "ticks": sum(ticks), "stolen": ticks[7]}
    except (OSError, ValueError, IndexError):
        return {}
    frequency = pathlib.Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")
    if frequency.is_file():
        state["mhz"] = int(frequency.read_text()) // 1000
    return state


def duration(us):
    if us is None:
        return "-"
    return f"{us:.1f} us" if us < 1e3 else f"{us / 1e3:.2f} ms"


def of_roof(row, table):
    """How the roof that binds a row is called, and per cent of it: of the median, of the best call and, in
    prompts, of the shortest time of each task. The roof is the largest that the run saw on as many threads:
    that of a row of five long calls may be too low."""
    kind, peak = (("pct_bw", "read_peak_gbs") if row["pct_bw_min_time"] is not None
                  else ("pct_peak", "fma_peak_gflops"))
    roof = max(other[peak] or 0 for other in table["rows"]
               if (other["threads"], other.get("target")) == (row["threads"], row.get("target")))
    return kind, [None if row.get(kind + of) is None else row[kind + of] * row[peak] / roof
                  for of in ("", "_min_time", "_tasks")]


def share(row, table):
    """'74 (76; 78)': the per cents of of_roof()."""
    kind, (median, best, tasks) = of_roof(row, table)
    text = f"({best:.0f})" if tasks is None else f"({best:.0f}; {tasks:.0f})"
    if median is not None:
        text = f"{median:.0f} {text}"
    return text + (" of read" if kind == "pct_bw" else "")


def core_table(table):
    """The shapes by row, the thread counts by column."""
    rows = {}
    for row in table["rows"]:
        rows.setdefault((row["shape"], row["problem"]), {})[row["threads"]] = row
    counts = sorted({row["threads"] for row in table["rows"]})
    head = "".join(f" {n} thread{'s' if n > 1 else ''} | best call | % of peak |" for n in counts)
    lines = [f"| shape |{head}", "|---|" + "---|---|---|" * len(counts)]
    for (shape, problem), of_shape in rows.items():
        cells = []
        for n in counts:
            row = of_shape[n]
            cells += [duration(row["median_us"]), duration(row["min_us"]), share(row, table)]
        lines.append(f"| {shape} `{problem}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def interval(ratio):
    if ratio.get("low") in (None, 0) or ratio.get("high") is None:
        return f"{ratio['median']:.3f}"
    return f"{ratio['median']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})"


def pairs_table(pairs, title):
    lines = [f"| {title} | threads | ratio, 95 % | of the shortest calls | quiet rounds |",
             "|---|---|---|---|---|"]
    for row in pairs["rows"]:
        rounds = f"{row['rounds_kept']} of {row['rounds_kept'] + row['rounds_dropped']}"
        ratio = f"{interval(row['ratio'])} | {row['min_ratio']:.3f}" if "ratio" in row else "- | -"
        lines.append(f"| {row['pair']} | {row['threads']} | {ratio} | {rounds} |")
    return "\n".join(lines) + "\n"


def short(peer):
    """What a peer says of itself, up to its version."""
    found = re.match(r".*?\d+(\.\d+)+", peer)
    return found.group() if found else peer


def shape_of(row):
    return row["pair"].split(":")[0], row["threads"]


def best_ratio(row):
    """heed's shortest call over the peer's, of all rounds: known where none was quiet too."""
    return (min(us for _, first, last, _, _ in row["rounds"] for us in (first, last))
            / min(us for first, _, _, last, _ in row["rounds"] for us in (first, last)))


def fastest_peers(peers):
    """(shape, threads) -> the row of its fastest peer, by the shortest calls."""
    best = {}
    for row in peers["rows"]:
        if row["rounds"]:
            best[shape_of(row)] = max(best.get(shape_of(row), row), row, key=best_ratio)
    return best


def shares_of_peers(peers):
    """heed's time over that of each shape's fastest peer; then who did not take part, and why."""
    lines = ["| shape | threads | fastest peer | of the shortest calls | of quiet rounds, 95 % |",
             "|---|---|---|---|---|"]
    for (shape, threads), row in fastest_peers(peers).items():
        ratio = interval(row["ratio"]) if "ratio" in row else "no quiet round"
        lines.append(f"| {shape} | {threads} | {short(row['base'])} | {best_ratio(row):.2f} | {ratio} |")
    refused = {}
    for row in peers["rows"]:
        if "refused" in row:
            shape, threads = shape_of(row)
            refused.setdefault((short(row["base"]), row["refused"]), []).append(f"{shape} ({threads})")
    if refused:
        lines.append("\nNot compared, by shape (threads):")
        lines += [f"- {peer}: {why}: {', '.join(shapes)}" for (peer, why), shapes in refused.items()]
    return "\n".join(lines) + "\n"


def fastest_engines(engines):
    """(problem, threads) -> the fastest engine's name and row, by the shortest calls."""
    best = {}
    for engine in engines:
        for row in engine["rows"]:
            if "refused" not in row:
                mine = (short(f"{engine['peer']} {engine['version']}"), row)
                at = (row["problem"], row["threads"])
                best[at] = max(best.get(at, mine), mine, key=lambda one: one[1]["min_ratio"])
    return best


def shares_of_engines(engines):
    """heed's time over that of each problem's fastest engine; then who did not take part, and why."""
    lines = ["| problem | threads | fastest engine | of the shortest calls | of all rounds, 95 % | heed is |",
             "|---|---|---|---|---|---|"]
    for (problem, threads), (name, row) in fastest_engines(engines).items():
        lines.append(f"| `{problem}` | {threads} | {name} | {row['min_ratio']:.2f} | {interval(row['ratio'])} "
                     f"| {row['verdict']} |")
    refused = {}
    for engine in engines:
        for row in engine["rows"]:
            if "refused" in row:
                refused.setdefault((engine["peer"], row["refused"]), set()).add(row["problem"])
    if refused:
        lines.append("\nNot compared:")
        lines += [f"- {peer}: {why}: {', '.join(sorted(problems))}"
                  for (peer, why), problems in refused.items()]
    return "\n".join(lines) + "\n"


def equal_calls(pairs):
    """By what share two calls of one thing differ, of each quiet round."""
    return [abs(math.log(last / first)) for row in pairs["rows"]
            for first, _, _, last, canary in row["rounds"] if canary is not None and canary >= QUIET]


def largest_difference(pairs):
    """What 19 of 20 quiet rounds stay below; None if there are too few of them."""
    apart = equal_calls(pairs) if pairs else []
    return statistics.quantiles(apart, n=20)[-1] if len(apart) > FEWEST else None


def near_the_limit(table):
    """How near the best calls come to the roof that binds their shape."""
    reached = {}
    for row in table["rows"]:
        kind, (_, best, _) = of_roof(row, table)
        reached.setdefault("of the FMA peak" if kind == "pct_peak" else "of read bandwidth", []).append(best)
    return ", ".join(f"{min(shares):.0f} to {max(shares):.0f} % {kind}" for kind, shares in reached.items())


def spread(ratios, names, shapes):
    return (f"{min(ratios):.2f} to {max(ratios):.2f} (half below {statistics.median(ratios):.2f}) of the "
            f"time of the fastest of {', '.join(names)}, on {shapes} shapes")


def against_others(peers, engines):
    """heed's best calls over those of the fastest others, from the least to the most; None without any."""
    parts = []
    fastest = fastest_peers(peers) if peers else {}
    if fastest:
        names = dict.fromkeys(row["pair"].split(" / ")[1] for row in peers["rows"] if row["rounds"])
        parts.append(spread([best_ratio(row) for row in fastest.values()], names,
                            len({shape for shape, _ in fastest})))
    by_dtype = {}
    for (problem, _), (_, row) in fastest_engines(engines).items():
        by_dtype.setdefault(problem.rsplit("_", 1)[1], []).append(row)
    for dtype, rows in by_dtype.items():
        names = [engine["peer"] for engine in engines
                 if any(row["problem"].endswith(dtype) and "refused" not in row for row in engine["rows"])]
        parts.append(f"{dtype}: " + spread([row["min_ratio"] for row in rows], names,
                                           len({row["problem"] for row in rows})))
    return "; ".join(parts) or None


def noise(table, pairs, environment):
    """How quiet the machine was, in lines."""
    lines = []
    canaries = [canary for row in table["rows"] for canary in row["rounds"]["canary_before"]]
    kept = sum(row["rounds_kept"] for row in table["rows"])
    total = kept + sum(row["rounds_dropped"] for row in table["rows"])
    tenths = statistics.quantiles(canaries, n=10)
    lines.append(f"- rounds of the table that were quiet: {kept} of {total}; the canary at "
                 f"{100 * tenths[0]:.0f}, {100 * tenths[4]:.0f} and {100 * tenths[8]:.0f} % of its best "
                 "(lowest tenth, median, highest tenth)")
    p95 = largest_difference(pairs)
    if p95 is not None:
        half = statistics.median(equal_calls(pairs))
        lines.append(f"- A/A: two calls of one thing in a quiet round differ by less than {100 * p95:.1f} % in "
                     f"19 of 20 rounds, {100 * half:.1f} % in half of them"
                     + (": **noisy** (above 3 %)" if p95 > NOISY else ""))
    elif pairs:
        lines.append(f"- A/A: not known, {len(equal_calls(pairs))} quiet rounds of pairs are too few")
    else:
        lines.append("- A/A: not known, no pairs were measured")
    begin, end = environment.get("begin"), environment.get("end")
    if begin and end:
        stolen = (end["stolen"] - begin["stolen"]) / max(end["ticks"] - begin["ticks"], 1)
        frequency = f"{end['mhz']} MHz" if "mhz" in end else "not readable"
        lines.append(f"- load average before {begin['load']:.1f}, after {end['load']:.1f}; stolen by other "
                     f"guests {100 * stolen:.1f} % of the time; frequency {frequency}")
    return "\n".join(lines) + "\n"


def summary(folder):
    table = read(folder / "table.json")
    if table is None:
        sys.exit(f"{folder}: no table.json")
    environment = read(folder / "environment.json") or {}
    pairs, peers = read(folder / "pairs.json"), read(folder / "peers.json")
    engines = read_engines(folder)
    text = f"# {table['cpu']}, {table['date'][:10]}, commit {table['commit']}\n\n"
    text += (f"- **near the limit:** best calls reach {near_the_limit(table)}\n"
             f"- **against others:** {against_others(peers, engines) or 'not measured'}\n"
             "- **again:** `bench/suite.sh` from a clone of the commit\n\n")
    for name in ("machine_key", "targets", "threads", "caches", "version", "compiler", "highway"):
        text += f"- {name}: `{table[name]}`\n"
    missing = [name for name in PARTS if not (folder / f"{name}.md").is_file()]
    if missing:
        text += f"\nNot measured: {', '.join(missing)} (`bench/suite.sh --resume` goes on).\n"
    text += "\n## Noise\n" + noise(table, pairs, environment)
    text += ("\n## Shapes\nMedians of quiet rounds (`-`: none was), the shortest of all calls, and per cent of "
             "the FMA peak or, in decoding, of the read bandwidth of the same run; in brackets the shortest "
             "call's and, in prompts, that of a call made of the shortest time of each of its tasks, which "
             "a neighbour disturbs least. "
             f"`{table['command']}`: [table.md](table.md).\n\n") + core_table(table)
    if peers:
        text += ("\n## Against other libraries\nheed's time over that of each shape's fastest peer, in the "
                 "same rounds of one process. Below 1 heed is faster. "
                 f"`{peers['command']}`: [peers.md](peers.md).\n\n") + shares_of_peers(peers)
    if engines:
        text += ("\n## Against other engines\nheed's time, through Python, over that of each problem's fastest "
                 "engine, in processes that take turns (`bench/peers/alternate.py`): all rounds, quiet or not. "
                 "Below 1 heed is faster.\n\n") + shares_of_engines(engines)
    stages = folder / "stages.md"
    if stages.is_file():
        lines = stages.read_text().split("\n\n", 1)[1].strip()
        text += f"\n## Where the time goes\n{lines}\n"
    if pairs:
        text += f"\n## What options cost\n`{pairs['command']}`: [pairs.md](pairs.md).\n\n"
        text += pairs_table(pairs, "time with over time without")
    figures = sorted(path.name for path in folder.glob("fig/*.svg"))
    if figures:
        text += "\n## Figures\n" + "\n".join(f"![{name[:-4]}](fig/{name})" for name in figures) + "\n"
    return table, text


def replace(path, begin, end, text):
    """Puts `text` between the lines that begin with `begin` and `end`."""
    old = path.read_text()
    pattern = re.compile(f"(^{re.escape(begin)}[^\n]*\n).*?(^{re.escape(end)})", re.DOTALL | re.MULTILINE)
    if not pattern.search(old):
        sys.exit(f"{path}: no lines that begin with {begin!r} and {end!r}")
    path.write_text(pattern.sub(lambda found: found.group(1) + text + found.group(2), old))


def publish(folder, table):
    at = folder.resolve().relative_to(ROOT).as_posix()
    p95 = largest_difference(read(folder / "pairs.json"))
    noisy = "" if p95 is None or p95 <= NOISY else f"""
**The machine was noisy**: equal calls in quiet rounds differ by up to {100 * p95:.0f} %. Medians are no \
better than that;
the best calls and per cents of them are what to go by."""
    replace(ROOT / "README.md", "<!-- measured: begin", "<!-- measured: end", f"""\
On {table['cpu']}, {table['threads']} threads, {table['targets'].split()[0]}, {table['compiler']}, \
commit {table['commit']}:
medians of the rounds in which the machine was quiet (`-`: none was), the shortest of all calls, and in per
cent, the latter in brackets, what they are of the FMA peak measured in the same run, and in decoding of its
read bandwidth; last in the brackets what a call would take by the shortest time of each of its tasks.
[summary.md]({at}/summary.md)
says more: how quiet the machine was, other libraries beside heed, where the time goes, what options cost.
`bench/suite.sh` makes all of it, on any machine.{noisy}

{core_table(table)}""")
    index = ROOT / "results/README.md"
    quiet = "not known" if p95 is None else ("noisy: " if noisy else "") + f"A/A {100 * p95:.1f} %"
    others = against_others(read(folder / "peers.json"), read_engines(folder)) or "not measured"
    row = (f"| {table['cpu']}, {table['threads']} threads<br>`{table['machine_key']}` | "
           f"{near_the_limit(table)} | {others} | {quiet} | "
           f"[{table['date'][:10]}, {table['commit']}]"
           f"(bench/{folder.parent.name}/{folder.name}/summary.md) |\n")
    rows = [line + "\n" for line in index.read_text().split("<!-- machines: begin -->\n")[1]
            .split("<!-- machines: end -->")[0].splitlines()]
    head, rows = rows[:2], [line for line in rows[2:] if table["machine_key"] not in line]
    replace(index, "<!-- machines: begin", "<!-- machines: end", "".join(head + sorted(rows + [row])))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--begin", action="store_true")
    what.add_argument("--publish", action="store_true")
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    folder = arguments.folder
    notes = folder / "environment.json"
    environment = {} if arguments.begin else read(notes) or {}
    # Of the first time after measuring: later ones say nothing of it.
    environment.setdefault("begin" if arguments.begin else "end", machine_state())
    if "begin" in environment:
        notes.write_text(json.dumps(environment, indent=1) + "\n")
    if arguments.begin:
        return
    table, text = summary(folder)
    (folder / "summary.md").write_text(text)
    print(folder / "summary.md")
    if arguments.publish:
        publish(folder, table)


if __name__ == "__main__":
    main()
