#!/usr/bin/env python3
"""Draws the figures of one folder of results from the JSON in it, and from nothing else.

usage: bench/figures.py results/bench/<machine key>/<date>-<commit>

Reads what is there of table.json, lengths.json, caches.json (heed_bench --heed_table), stages.json
(--heed_stages), pairs.json and peers.json (--heed_pairs), and of the machine's tuning record; writes
fig/*.svg and fig/*.png. Needs matplotlib (Debian: python3-matplotlib).
"""

import argparse
import json
import pathlib
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402

# Okabe and Ito's palette, told apart by every kind of colour vision; threads also differ in marker.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
THREAD_STYLE = [(BLUE, "o"), (ORANGE, "s"), (GREEN, "^")]

plt.rcParams.update({
    "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    # A white card: legible on a dark page as on a light one.
    "figure.facecolor": "white", "savefig.facecolor": "white", "svg.hashsalt": "heed",
    "svg.fonttype": "none",
})


def threads_of(rows):
    return sorted({row["threads"] for row in rows})


def style(rows, threads):
    return THREAD_STYLE[threads_of(rows).index(threads) % len(THREAD_STYLE)]


def label(threads):
    return "1 thread" if threads == 1 else f"{threads} threads"


def plain(axis, ticks=None):
    """Numbers rather than powers, at `ticks` or where they are."""
    if ticks:
        axis.set_ticks(ticks)
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(matplotlib.ticker.NullFormatter())


def finish(figure, folder, name, data):
    """Footnotes the figure with what made it and writes both forms."""
    figure.text(0.01, 0.005, f"{data['cpu']}: {data['machine_key']}, {data['date'][:10]}, "
                f"commit {data['commit']}", fontsize=6.5, color=GREY)
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    folder.mkdir(exist_ok=True)
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    figure.savefig(folder / f"{name}.png", dpi=140, metadata={"Software": None})
    plt.close(figure)
    print(folder / f"{name}.svg")


def bar_chart_of_peaks(data, folder):
    """Share of the roof that binds each shape: FMA peak, or read bandwidth in decoding."""
    rows = data["rows"]
    shapes = list(dict.fromkeys(row["shape"] for row in rows))
    figure, axis = plt.subplots(figsize=(7.5, 0.42 * len(shapes) + 1.5))
    counts = threads_of(rows)
    height = 0.8 / len(counts)
    for number, threads in enumerate(counts):
        colour, _ = style(rows, threads)
        for place, shape in enumerate(shapes):
            row = next(r for r in rows if r["shape"] == shape and r["threads"] == threads)
            bound = "bw" if row["read_peak_gbs"] else "peak"
            median, best = row[f"pct_{bound}"], row[f"pct_{bound}_min_time"]
            y = place + (number - (len(counts) - 1) / 2) * height
            axis.plot([best, best], [y - height * 0.45, y + height * 0.45], color="black", lw=1)
            axis.text(best + 0.7, y, f"{best:.0f}", va="center", fontsize=7)
            if median is None:
                axis.text(1, y, "no quiet round", va="center", fontsize=7, color=GREY)
                continue
            axis.barh(y, median, height * 0.9, color=colour,
                      hatch="///" if bound == "bw" else None, edgecolor="white", linewidth=0)
            axis.text(median - 1, y, f"{median:.0f}", va="center", ha="right", fontsize=7,
                      color="white", bbox={"facecolor": colour, "edgecolor": "none", "pad": 0.8})
    axis.set_yticks(range(len(shapes)), shapes)
    axis.invert_yaxis()
    axis.set_xlim(0, 100)
    axis.grid(axis="x", color="#dddddd")
    axis.set_xlabel("median, % of the FMA peak (hatched: of read bandwidth); line: the best call")
    axis.legend(handles=[Patch(color=style(rows, threads)[0], label=label(threads))
                         for threads in counts], loc="upper right", fontsize=8, framealpha=1)
    axis.set_title("How near the machine's limit", loc="left")
    finish(figure, folder, "peaks", data)


def best_gflops(row):
    return row["pct_peak_min_time"] * row["fma_peak_gflops"] / 100


def roofline(data, folder):
    """Shapes by their best call, which each has, under the roofs."""
    figure, axis = plt.subplots(figsize=(7.5, 4.8))
    for threads in threads_of(data["rows"]):
        colour, marker = style(data["rows"], threads)
        mine = [row for row in data["rows"] if row["threads"] == threads]
        peak = max(row["fma_peak_gflops"] for row in mine)
        reads = [row["read_peak_gbs"] for row in mine if row["read_peak_gbs"]]
        points = sorted((best_gflops(row) / best_rate(row), best_gflops(row), row["shape"]) for row in mine)
        if reads:
            xs = [10 ** (e / 50) for e in range(-10, 180)]
            axis.plot(xs, [min(peak, max(reads) * x) for x in xs], color=colour, lw=1.2)
        axis.plot([x for x, _, _ in points], [y for _, y, _ in points], marker, color=colour, ms=5,
                  label=f"{label(threads)}: roof {peak:.0f} GFLOP/s"
                        + (f", {max(reads):.0f} GB/s" if reads else ""))
        if threads == threads_of(data["rows"])[0]:
            while points:  # names of neighbours below each other, below the lowest of them
                group = [point for point in points if point[0] < 1.6 * points[0][0]]
                points = points[len(group):]
                middle = (group[0][0] * group[-1][0]) ** 0.5
                axis.annotate("\n".join(name for _, _, name in group), (middle, min(y for _, y, _ in group)),
                              xytext=(8, -6), textcoords="offset points", fontsize=6.5, ha="center", va="top")
    axis.set_xscale("log")
    axis.set_yscale("log")
    plain(axis.xaxis)
    low, high = axis.get_ylim()
    plain(axis.yaxis, [step * 10 ** e for e in range(6) for step in (1, 2, 5) if low < step * 10 ** e < high])
    axis.grid(color="#e4e4e4", which="major")
    axis.set_xlabel("arithmetic intensity, FLOP per byte of q, k, v and out")
    axis.set_ylabel("GFLOP/s, the best call")
    axis.legend(fontsize=8, loc="lower right", framealpha=1)
    axis.set_title("Roofline, both roofs measured in the same run", loc="left")
    finish(figure, folder, "roofline", data)


def lengths_of(row, letter):
    return int(re.search(rf"_{letter}(\d+)_", row["problem"]).group(1))


def series(rows, letter, value):
    """(threads, dtype) -> sorted [(length, value(row))]."""
    lines = {}
    for row in rows:
        key = (row["threads"], row["problem"].rsplit("_", 1)[1])
        lines.setdefault(key, []).append((lengths_of(row, letter), value(row)))
    return {key: sorted(points) for key, points in sorted(lines.items())}


DASHES = {"f32": "-", "f16": ":", "bf16": "--"}


def time_against_length(data, folder):
    figure, axis = plt.subplots(figsize=(7.5, 4.6))
    for (threads, dtype), points in series(data["rows"], "q", lambda row: row["min_us"]).items():
        colour, marker = style(data["rows"], threads)
        xs, us = zip(*points)
        axis.plot(xs, [u / 1e3 for u in us], DASHES[dtype], marker=marker, color=colour, ms=4,
                  label=f"{dtype}, {label(threads)}")
        if dtype == "f32" and threads == 1:
            # Beside the times, not on them.
            guide = [2 * us[-1] / 1e3 * (x / xs[-1]) ** 2 for x in xs]
            axis.plot(xs, guide, color="#999999", lw=0.8)
            axis.annotate("quadratic", (xs[len(xs) // 2], guide[len(xs) // 2]), fontsize=7, color=GREY,
                          xytext=(-6, 4), textcoords="offset points", ha="right")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    plain(axis.xaxis, xs)
    plain(axis.yaxis)
    axis.set_xlabel("tokens")
    axis.set_ylabel("ms, the best call")
    axis.grid(color="#e4e4e4")
    axis.legend(fontsize=8)
    problem = re.sub(r"_q\d+_k\d+_", "_q*_k*_", data["rows"][0]["problem"])
    axis.set_title(f"Time against length, {problem}", loc="left")
    finish(figure, folder, "lengths", data)


def best_rate(row):
    """GB/s of q, k, v and out in the shortest call."""
    names = r"b(\d+)_hq(\d+)_hkv(\d+)_q(\d+)_k(\d+)_d(\d+)_\w*?(f32|f16|bf16)"
    *sizes, dtype = re.match(names, row["problem"]).groups()
    b, hq, hkv, q, k, d = map(int, sizes)
    return 2 * b * d * (hq * q + hkv * k) * (4 if dtype == "f32" else 2) / row["min_us"] / 1e3


def bandwidth_against_cache(data, folder):
    figure, axis = plt.subplots(figsize=(7.5, 4.6))
    axis.set_xscale("log", base=2)
    for (threads, dtype), points in series(data["rows"], "k", best_rate).items():
        colour, marker = style(data["rows"], threads)
        xs, ys = zip(*points)
        axis.plot(xs, ys, DASHES[dtype], marker=marker, color=colour, ms=4,
                  label=f"{dtype}, {label(threads)}")
    for threads in threads_of(data["rows"]):
        reads = [r["read_peak_gbs"] for r in data["rows"] if r["threads"] == threads]
        colour, _ = style(data["rows"], threads)
        top = max(read for read in reads if read)
        axis.axhline(top, color=colour, lw=1, alpha=0.6)
        axis.annotate(f"read bandwidth, {label(threads)}", (axis.get_xlim()[1], top), fontsize=7,
                      color=colour, xytext=(-4, -9), textcoords="offset points", ha="right")
    axis.set_ylim(bottom=0)
    plain(axis.xaxis, xs)
    axis.set_xlabel("keys in the cache")
    axis.set_ylabel("GB/s of q, k, v and out, the best call")
    axis.grid(color="#e4e4e4")
    axis.legend(fontsize=8, loc="lower right")
    axis.set_title("Decoding one token, caches too large for the L3", loc="left")
    finish(figure, folder, "caches", data)


def ratios(rows, axis):
    """Medians of time ratios with their intervals, a row each, on a logarithmic axis."""
    for place, row in enumerate(rows):
        colour, marker = style(rows, row["threads"])
        if "ratio" not in row:
            axis.annotate("no quiet round", (1, place), xytext=(5, -3), fontsize=7, color=GREY,
                          textcoords="offset points")
            continue
        ratio = row["ratio"]
        bounded = ratio.get("high") is not None
        low, high = (ratio["low"], ratio["high"]) if bounded else [ratio["median"]] * 2
        axis.plot([low, high], [place, place], color=colour, lw=2)
        axis.plot(ratio["median"], place, marker, color=colour, ms=5,
                  markerfacecolor=colour if bounded else "white")
        digits = 2 if ratio["median"] > 0.2 else 3
        axis.annotate(f"{ratio['median']:.{digits}f}", (high, place), xytext=(6, -3), fontsize=7,
                      textcoords="offset points",
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})
    axis.axvline(1, color=GREY, lw=0.8, zorder=0)
    axis.set_xscale("log")
    axis.set_xlim(right=axis.get_xlim()[1] * 1.3)  # for the last number
    plain(axis.xaxis, [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2])
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.grid(axis="x", color="#e4e4e4")


def cost_of_options(data, folder):
    rows = [row for row in data["rows"] if row["threads"] == 1]
    if not rows:
        return
    figure, axis = plt.subplots(figsize=(7.5, 0.24 * len(rows) + 1.4))
    for place, row in enumerate(rows):
        axis.plot(row["flop_ratio"], place, "|", color=ORANGE, ms=9, mew=1.6)
    ratios(rows, axis)
    axis.set_yticks(range(len(rows)), [row["pair"] for row in rows], fontsize=8)
    axis.set_xlabel("time with / without: median and 95 % interval (open: too few quiet rounds for one)\n"
                    "tick: the work with / without", fontsize=8)
    axis.set_title("What options cost, one thread", loc="left")
    finish(figure, folder, "options", data)


def against_peers(data, folder):
    rows = [row for row in data["rows"] if "ratio" in row]
    if not rows:
        return
    loud = sum("ratio" not in row and "refused" not in row for row in data["rows"])
    figure, axis = plt.subplots(figsize=(7.5, 0.2 * len(rows) + 1.8))
    ratios(rows, axis)
    names = [row["pair"].split(": heed / ") for row in rows]
    axis.set_yticks(range(len(rows)), [f"{shape}, {peer}" for shape, peer in names], fontsize=7)
    shapes = list(dict.fromkeys(shape for shape, _ in names))
    for place, (shape, _) in enumerate(names):
        if shapes.index(shape) % 2:
            axis.axhspan(place - 0.5, place + 0.5, color="#f2f2f2", zorder=-1)
    axis.set_xlabel("heed's time / the peer's: median and 95 % interval (open: too few quiet rounds for one)"
                    + (f"\nnot drawn: {loud} rows without a quiet round" if loud else ""), fontsize=8)
    axis.legend(handles=[Line2D([], [], linestyle="", color=style(rows, threads)[0], label=label(threads),
                                marker=style(rows, threads)[1]) for threads in threads_of(rows)],
                loc="lower left", fontsize=8, framealpha=1)
    axis.set_title("Against other libraries: left of 1 heed is faster", loc="left")
    finish(figure, folder, "peers", data)


STAGES = [("scores", BLUE), ("blend", GREEN), ("softmax", ORANGE), ("pack_q", "#CC79A7"), ("pack_v", "#F0E442"),
          ("rest", "#bbbbbb")]


def where_the_time_goes(data, folder):
    """A bar per head width: the full prompt's time by stage, in per cent of the time at the peak."""
    rows = sorted(data["rows"], key=lambda row: row["dim"])
    figure, axis = plt.subplots(figsize=(7.5, 0.42 * len(rows) + 1.9))
    for place, row in enumerate(rows):
        at_peak = 4 * row["dim"] / row["fma_peak_gflops"] * 1e3  # picoseconds of a score
        share = {name: 100 * stage["ps_least"] / at_peak for name, stage in row["stages"].items()}
        share["rest"] = share["full"] - sum(share[name] for name, _ in STAGES[:-1])
        left = 0
        for name, colour in STAGES:
            width = max(share[name], 0)
            axis.barh(place, width, left=left, color=colour, edgecolor="white", linewidth=0.5)
            if width > 3:
                axis.text(left + width / 2, place, f"{width:.0f}", ha="center", va="center", fontsize=7,
                          bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})
            left += width
        axis.annotate(f"{1e4 / share['full']:.0f} % of peak", (left, place), xytext=(4, -3), fontsize=7,
                      textcoords="offset points")
    axis.axvline(100, color="black", lw=0.8)
    axis.annotate("at the peak", (100, -0.5), xytext=(3, 2), fontsize=7, textcoords="offset points")
    axis.set_xlim(0, axis.get_xlim()[1] * 1.08)
    axis.set_yticks(range(len(rows)), [f"D {row['dim']}, {row['target']}" for row in rows])
    axis.invert_yaxis()
    axis.set_xlabel("time, per cent of that at the FMA peak; shortest samples, one thread")
    axis.legend(handles=[Patch(color=colour, label=name.replace("_", " ")) for name, colour in STAGES],
                fontsize=7, ncol=6, loc="upper center", bbox_to_anchor=(0.45, -0.3), frameon=False)
    axis.set_title(f"Where the time of a prompt of {data['tokens']} tokens goes", loc="left")
    finish(figure, folder, "stages", data)


def gain_of_tuning(record, data, folder):
    """The tuned time over the default's, of each class that was measured, with its interval."""
    entries = record["entries"]
    figure, axis = plt.subplots(figsize=(7.5, 0.32 * len(entries) + 1.6))
    for place, entry in enumerate(entries):
        colour = ORANGE if entry["decision"] == "adopted" else GREY
        low, high = (100 * (bound - 1) for bound in entry["gain"]["ci95"])
        mid = 100 * (entry["gain"]["median"] - 1)
        axis.plot([low, high], [place, place], color=colour, lw=2)
        axis.plot(mid, place, "o", color=colour, ms=5)
    axis.axvline(0, color="black", lw=0.8)
    axis.set_yticks(range(len(entries)), [entry["problem"] for entry in entries], fontsize=7)
    axis.invert_yaxis()
    axis.grid(axis="x", color="#e4e4e4")
    axis.set_xlabel("gain over the model's tile, per cent (grey: the model's is kept)", fontsize=8)
    axis.set_title("Gain of tuning", loc="left")
    run = record["runs"][-1]
    finish(figure, folder, "tuning", {**data, "date": run["ended"], "commit": run["build"]["git"]})


FIGURES = {
    "table.json": ("heed-bench-table", [bar_chart_of_peaks, roofline]),
    "lengths.json": ("heed-bench-table", [time_against_length]),
    "caches.json": ("heed-bench-table", [bandwidth_against_cache]),
    "stages.json": ("heed-bench-stages", [where_the_time_goes]),
    "pairs.json": ("heed-bench-pairs", [cost_of_options]),
    "peers.json": ("heed-bench-pairs", [against_peers]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder.resolve()
    drawn = False
    for name, (schema, figures) in FIGURES.items():
        if not (folder / name).is_file():
            continue
        data = json.loads((folder / name).read_text())
        if data.get("schema") != schema:
            sys.exit(f"{folder / name}: schema {data.get('schema')!r}; expected {schema!r}")
        for figure in figures:
            figure(data, folder / "fig")
        drawn = True
        record = folder.parents[2] / "tuning" / data["machine_key"] / "record.json"
        if name == "table.json" and record.is_file():
            gain_of_tuning(json.loads(record.read_text()), data, folder / "fig")
    if not drawn:
        sys.exit(f"{folder}: none of {', '.join(FIGURES)}")


if __name__ == "__main__":
    main()
