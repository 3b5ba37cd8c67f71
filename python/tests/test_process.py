"""heed among threads and processes: fork, exit, the interpreter's lock, no library."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import heed

# Only a program that hangs needs so long.
PATIENCE = 300


def python(code, **environment):
    """Runs a program of its own; (exit code, stdout, stderr)."""
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        timeout=PATIENCE, env={**os.environ, **environment},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


SETUP = """
import os, sys, threading, time
import numpy as np
import heed
x = np.random.default_rng(3).standard_normal((1, 4, 400, 64)).astype(np.float32)
run = lambda: heed.attention(x, x, x, causal=True, threads=2)
want = run()
"""


def test_a_child_of_a_fork_computes_the_same():
    code = SETUP + """
busy, stop = [], threading.Event()
for _ in range(2):  # forks while other threads are inside heed, too
    def work():
        while not stop.is_set():
            run()
    busy.append(threading.Thread(target=work))
    busy[-1].start()
codes = []
for way in ("_exit", "exit") * 4:
    pid = os.fork()
    if pid == 0:
        same = (run() == want).all() and (heed.attention(x, x, x, causal=True) == want).all()
        if way == "_exit":
            os._exit(0 if same else 3)
        sys.exit(0 if same else 3)
    codes.append(os.waitpid(pid, 0)[1])
stop.set()
for thread in busy:
    thread.join()
print(codes)
"""
    code, out, err = python(code)
    assert (code, out.strip()) == (0, str([0] * 8)), err


def test_multiprocessing_children_compute_the_same():
    code = SETUP + """
import multiprocessing
def child(i):
    return bool((heed.attention(x, x, x, causal=True) == want).all())
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(child, range(6)))
"""
    code, out, err = python(code)
    assert (code, out.strip()) == (0, str([True] * 6)), err


def test_the_interpreter_may_exit_with_work_in_flight():
    code = SETUP + """
y = np.concatenate([x] * 20, axis=2)
started = threading.Event()
def work():
    started.set()
    while True:
        heed.attention(y, y, y, threads=2)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
started.wait()
time.sleep(0.2)
print("leaving")
"""
    code, out, err = python(code)
    assert (code, out.strip(), err) == (0, "leaving", "")


def test_threads_share_plans_and_not_their_results():
    rng = np.random.default_rng(4)
    inputs = [rng.standard_normal((1, 4, 200, 32)).astype(np.float32) for _ in range(4)]
    want = [heed.attention(x, x, x, causal=True) for x in inputs]
    plan = heed.Plan("b1_hq4_hkv4_q200_k200_d32_causal_f32", threads=2)
    wrong = []

    def work(i):
        x = inputs[i]
        for _ in range(30):
            if not (heed.attention(x, x, x, causal=True) == want[i]).all():
                wrong.append(i)
            if not (plan.run(x, x, x) == want[i]).all():
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_python_threads_run_during_a_call():
    x = np.ones((1, 4, 2000, 64), np.float32)
    stop, counted = threading.Event(), [0]

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.0001)

    # Nobody takes the lock from a thread now, so the other one counts only if a
    # call lets go of it. One call may be too short on a busy machine.
    sys.setswitchinterval(1000)
    try:
        other = threading.Thread(target=count)
        other.start()  # returns when the thread runs
        before = counted[0]
        deadline = time.monotonic() + 60
        while counted[0] <= before + 1 and time.monotonic() < deadline:
            heed.attention(x, x, x, threads=1)
        seen = counted[0]
        stop.set()
        other.join()
    finally:
        sys.setswitchinterval(0.005)
    assert seen > before + 1


def test_no_library_is_one_clear_line(tmp_path):
    missing = tmp_path / "libheed.so"
    code, out, err = python("import heed", HEED_LIBRARY=str(missing))
    assert code == 1 and not out
    last = err.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: heed: libheed is not installed; tried {missing}")
    wrong = tmp_path / "wrong.so"
    wrong.write_text("no library")
    code, out, err = python("import heed", HEED_LIBRARY=str(wrong))
    assert code == 1 and f"{wrong} (" in err.strip().splitlines()[-1]
    code, out, err = python("import heed", HEED_LIBRARY="libm.so.6")
    assert err.strip().splitlines()[-1].endswith("libm.so.6 does not fit: it is not libheed")


def test_inside_an_openmp_program():
    torch = pytest.importorskip("torch", reason="torch, an OpenMP program, is not installed")
    a = torch.randn(600, 600)
    x = np.random.default_rng(4).standard_normal((1, 4, 200, 32)).astype(np.float32)
    want = heed.attention(x, x, x)
    for _ in range(20):
        a @ a  # leaves OpenMP's threads spinning
        assert (heed.attention(x, x, x) == want).all()
