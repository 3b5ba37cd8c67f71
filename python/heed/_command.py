"""heed.info and heed.tune: what heed knows of this machine, and the tuner."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from . import __path__ as _package_path
from . import _core, _library


def _command():
    """The command `heed`: named, in the wheel, beside the library, on the path."""
    named = os.environ.get("HEED_COMMAND")
    if named:
        return named
    inside = _library.packaged(_package_path, "bin/heed")
    if inside:
        return inside
    beside = Path(_core.library.path).resolve().parent
    for inside in (beside / "heed", beside.parent / "bin" / "heed"):
        if inside.exists():
            return str(inside)
    return shutil.which("heed")


def _run(arguments):
    command = _command()
    if command is None:
        raise RuntimeError(
            "heed: the command heed is not installed; install heed's wheel, or name the "
            "file in HEED_COMMAND"
        )
    done = subprocess.run(
        [command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if done.returncode == 2:
        raise ValueError(done.stderr.strip())
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def _machine():
    if _command() is None:
        return None
    try:
        return _run(["info", "--json"])
    except (OSError, RuntimeError) as error:
        return {"error": str(error)}


def info() -> dict:
    """What heed is and runs on: ``version``, ``library`` (its file), ``targets``
    (SIMD, best first), ``threads`` (of a large call), ``numpy_bfloat16`` (the type
    that bfloat16 has in NumPy), and, where the command `heed` is installed,
    ``machine``: caches, tuning records, and the tile of each standard shape (or
    ``error``, why the command does not run).
    """
    from ._array import BF16, numpy_dtype
    from ._plan import Plan

    plan = Plan("b8_hq32_hkv32_q2048_k2048_d128_f32").describe()
    words = dict(word.split("=", 1) for word in plan.split(" ") if "=" in word)
    return {
        "version": _core.library.heed_version().decode(),
        "library": _core.library.path,
        "targets": _library.text(_core.library.heed_targets).split(),
        "threads": int(words["threads"]),
        "numpy_bfloat16": numpy_dtype(BF16).name,
        "machine": _machine(),
    }


def records_folder() -> Path:
    """Where heed.tune writes and libheed looks first."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(config) if config.startswith("/") else Path.home() / ".config"
    return base / "heed" / "tuning"


def tune(
    shapes="core",
    *,
    budget: str = "120s",
    threads: int | None = None,
    output: str | os.PathLike | None = None,
    effort: str = "normal",
) -> dict:
    """Measures which tiles are fastest on this machine and writes them down. No
    tile changes a result.

    Args:
      shapes: "core" (the eleven standard ones), "all", or a list of names and
        problem strings.
      budget: time for everything, such as "30s" or "2m".
      threads: tune for so many; None = what this process may use.
      output: folder for ``<machine key>/record.json``; None = the user's, where
        heed looks. A process reads records once, before its first plan: tune in
        one, use in the next.
      effort: "quick", "normal" or "thorough".

    Returns:
      ``path`` of the record, the ``record``, and whether it was ``interrupted``.

    Raises:
      ValueError: of an argument; RuntimeError if the command fails or is missing.
    """
    if not isinstance(shapes, str):
        shapes = ",".join(shapes)
    arguments = ["tune", "--json", "--no-progress", "--shapes", shapes]
    arguments += ["--budget", budget, "--effort", effort]
    arguments += ["--output", os.fspath(output or records_folder())]
    if threads is not None:
        arguments += ["--threads", str(threads)]
    return _run(arguments)
