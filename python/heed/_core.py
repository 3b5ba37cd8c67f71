"""Plans and calls over the C ABI: what heed.attention and heed.Plan share.

A `Prepared` is a plan and the calls of one layout of its tensors, sizes and strides
filled in. It does not change, but for its stack of idle calls.
"""

from __future__ import annotations

import ctypes
import threading

import numpy as np

from . import _abi, _library
from . import __path__ as _package_path

library = _library.load(_package_path)

# Scratch of a thread up to this size is kept for its next call.
_KEPT_BYTES = 64 << 20


class _Workspace(threading.local):
    """Scratch of one thread, aligned to 64 bytes."""

    size = 0
    address = 0
    memory = None

    def reserve(self, size):
        """(address, what owns it) of at least `size` bytes."""
        if size <= self.size:
            return self.address, self.memory
        memory = np.empty(size + 64, np.uint8)
        address = (memory.ctypes.data + 63) & ~63
        if size <= _KEPT_BYTES:
            self.memory, self.address, self.size = memory, address, size
        return address, memory


_workspace = _Workspace()


def check(status):
    if status != _abi.OK:
        _library.raise_error(library, status)


def new_problem():
    problem = _abi.Problem()
    library.heed_problem_init(ctypes.addressof(problem))
    return problem


def new_call():
    call = _abi.Call()
    library.heed_call_init(ctypes.addressof(call))
    return call


def parse_problem(text):
    problem = _abi.Problem()
    check(library.heed_problem_parse(text.encode(), ctypes.addressof(problem)))
    return problem


def print_problem(problem):
    return _library.text(library.heed_problem_print, ctypes.addressof(problem))


def new_options(threads=0, tuning=_abi.TUNING_AUTO, tile=None, target=None):
    options = _abi.Options()
    library.heed_options_init(ctypes.addressof(options))
    options.threads = threads
    options.tuning = tuning
    if tile is not None:
        options.tuning = _abi.TUNING_PINNED
        for name, value in tile.items():
            if name not in _abi.TILE_FIELDS:
                raise ValueError(
                    f"tile has {name!r}; expected {', '.join(_abi.TILE_FIELDS)}"
                )
            setattr(options.tile, name, value)
    if target is not None:
        options.target = target.encode()
    return options


class Plan:
    """A heed_plan. Immutable."""

    def __init__(self, problem, options):
        self.problem = problem
        self.options = options
        self.handle = None
        handle = ctypes.c_void_p()
        check(
            library.heed_plan_create(
                ctypes.addressof(problem),
                ctypes.addressof(options),
                ctypes.addressof(handle),
            )
        )
        self.handle = handle.value
        self.workspace_size = library.heed_plan_workspace_size(self.handle)
        self._destroy = library.heed_plan_destroy

    def __del__(self):
        if self.handle is not None:
            self._destroy(self.handle)

    def describe(self):
        return _library.text(library.heed_plan_describe, self.handle)


class Prepared:
    """A plan and calls of one layout of tensors. Threads share it."""

    def __init__(self, plan, template):
        """`template`: a call whose strides are set, which others copy."""
        self.plan = plan
        self.handle = plan.handle
        self.workspace_size = plan.workspace_size
        self.template = template
        self._idle = []

    def take(self):
        """A call with the template's strides, for one thread until give()."""
        try:
            return self._idle.pop()
        except IndexError:
            call = _abi.Call.from_buffer_copy(self.template)
            call.address = ctypes.addressof(call)
            return call

    def give(self, call):
        self._idle.append(call)

    def run(self, call):
        """Runs on this thread's workspace. The caller keeps the arrays alive."""
        memory = None
        if self.workspace_size:
            call.workspace, memory = _workspace.reserve(self.workspace_size)
            call.workspace_size = self.workspace_size
        status = library.heed_plan_run(self.handle, call.address)
        del memory
        if status != _abi.OK:
            _library.raise_error(library, status)

    def scores(self, call, stage, out):
        """heed_scores into `out`, a float32 array [batch, heads, queries, keys]."""
        scores = _abi.Output(
            out.ctypes.data, *(stride // out.itemsize for stride in out.strides)
        )
        check(
            library.heed_scores(
                ctypes.addressof(self.plan.problem),
                ctypes.addressof(self.plan.options),
                call.address,
                stage,
                ctypes.addressof(scores),
            )
        )


def set_strides(call, name, strides):
    """Sets the four strides of tensor `name`, in elements."""
    for axis, stride in zip(("batch", "head", "token", "dim"), strides):
        setattr(call, f"{name}_stride_{axis}", stride)


# The arrays of a call that are pointers alone.
CALL_ARRAYS = (
    "alibi_slopes", "sinks", "seqused_k", "cu_seqlens_q", "cu_seqlens_k",
    "causal_offsets",
)  # fmt: skip


def set_table(struct, table, num_pages):
    """Points a call or an append at an int32 block table [batch, max_pages]."""
    struct.block_table_data = table.ctypes.data
    struct.block_table_stride_batch = struct.block_table_max_pages = table.shape[1]
    struct.block_table_num_pages = num_pages


class Cache:
    """Prepared plans by what they were prepared for; the oldest go first."""

    def __init__(self, size):
        self._size = size
        self._plans = {}
        self.get = self._plans.get

    def put(self, key, prepared):
        while len(self._plans) >= self._size:
            try:
                del self._plans[next(iter(self._plans))]
            except (KeyError, StopIteration, RuntimeError):
                pass  # another thread was faster
        self._plans[key] = prepared
