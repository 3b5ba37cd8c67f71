"""The structs and numbers of heed.h, field by field, for ctypes.

Knows nothing of arrays. Nested structs are written out flat (``q_data``,
``q_stride_batch``): the layout is the same, and setting a field costs half.
"""

from __future__ import annotations

import ctypes

OK = 0
INVALID_ARGUMENT = 1
UNSUPPORTED = 2
OUT_OF_MEMORY = 3
INTERNAL = 4

F32 = 1
F16 = 2
BF16 = 3

CAUSAL_NONE = 0
TOP_LEFT = 1  # of heed_causal and of heed_align
BOTTOM_RIGHT = 2
OFFSET = 3

MASK_NONE = 0
MASK_BOOL = 1
MASK_F32 = 2
MASK_DTYPE = 3

SCALE_INV_SQRT_DIM = 1
SCALE_VALUE = 2

TUNING_AUTO = 0
TUNING_OFF = 1
TUNING_PINNED = 2

SCORES_SCALED = 1
SCORES_CAPPED = 2
SCORES_BIASED = 3
SCORES_WEIGHTS = 4

_I32 = ctypes.c_int32
_I64 = ctypes.c_int64
_PTR = ctypes.c_void_p
_SIZE = ctypes.c_size_t


def _tensor(name):
    """The fields of a heed_input or heed_output called `name`."""
    return [(name + "_data", _PTR)] + [
        (f"{name}_stride_{axis}", _I64)
        for axis in ("batch", "head", "token", "dim")
    ]


def _block_table(name):
    return [
        (name + "_data", _PTR),
        (name + "_stride_batch", _I64),
        (name + "_max_pages", _I64),
        (name + "_num_pages", _I64),
    ]


class Problem(ctypes.Structure):
    """heed_problem."""

    _fields_ = (
        [("struct_size", _SIZE)]
        + [
            (name, _I64)
            for name in (
                "batch", "heads_q", "heads_kv", "len_q", "len_k", "dim_qk", "dim_v",
            )
        ]
        + [(name, _I32) for name in ("dtype", "causal", "scale_mode", "align")]
        + [("scale", ctypes.c_double), ("softcap", ctypes.c_double)]
        + [("window", _I32), ("mask", _I32)]
        + [("window_left", _I64), ("window_right", _I64)]
        + [(name, _I32) for name in ("alibi", "sinks", "ragged", "reserved")]
        + [("page_size", _I64), ("mask_block_q", _I32), ("mask_block_k", _I32)]
    )


TILE_FIELDS = ("row_block", "key_tile", "pack_k", "pack_v", "prefetch",
               "tasks_per_thread", "decode_below")  # fmt: skip


class Tile(ctypes.Structure):
    """heed_tile."""

    _fields_ = [(name, _I32) for name in TILE_FIELDS] + [("reserved", _I32 * 1)]


class Options(ctypes.Structure):
    """heed_options."""

    _fields_ = [
        ("struct_size", _SIZE),
        ("threads", _I32),
        ("tuning", _I32),
        ("tile", Tile),
        ("target", ctypes.c_char_p),
        ("runner", _PTR),
    ]


class Output(ctypes.Structure):
    """heed_output, where it stands alone."""

    _fields_ = [("data", _PTR)] + [
        ("stride_" + axis, _I64) for axis in ("batch", "head", "token", "dim")
    ]


class Call(ctypes.Structure):
    """heed_call."""

    _fields_ = (
        [("struct_size", _SIZE)]
        + _tensor("q")
        + _tensor("k")
        + _tensor("v")
        + _tensor("out")
        + _tensor("lse")
        + [("causal_offset", _I64)]
        + _tensor("mask")
        + [
            (name, _PTR)
            for name in (
                "alibi_slopes", "sinks", "seqused_k", "cu_seqlens_q",
                "cu_seqlens_k", "causal_offsets",
            )
        ]
        + _block_table("block_table")
        + [("workspace", _PTR), ("workspace_size", _SIZE)]
    )


class Append(ctypes.Structure):
    """heed_append."""

    _fields_ = (
        [("struct_size", _SIZE)]
        + [
            (name, _I64)
            for name in (
                "batch", "heads_kv", "len_new", "len_cache", "dim_qk", "dim_v",
            )
        ]
        + [("dtype_new", _I32), ("dtype_cache", _I32)]
        + _tensor("k_new")
        + _tensor("v_new")
        + _tensor("k_cache")
        + _tensor("v_cache")
        + [
            (name, _PTR)
            for name in (
                "positions", "positions_i32", "cu_seqlens_new", "cu_seqlens_cache",
            )
        ]
        + [("page_size", _I64)]
        + _block_table("block_table")
    )


# Struct, and the function that says how large the library's own is.
STRUCTS = [
    (Problem, "heed_problem_init"),
    (Options, "heed_options_init"),
    (Call, "heed_call_init"),
    (Append, "heed_append_init"),
]

# name: (result, arguments)
FUNCTIONS = {
    "heed_problem_init": (None, [_PTR]),
    "heed_options_init": (None, [_PTR]),
    "heed_call_init": (None, [_PTR]),
    "heed_append_init": (None, [_PTR]),
    "heed_plan_create": (ctypes.c_int, [_PTR, _PTR, _PTR]),
    "heed_plan_destroy": (None, [_PTR]),
    "heed_plan_workspace_size": (_SIZE, [_PTR]),
    "heed_plan_run": (ctypes.c_int, [_PTR, _PTR]),
    "heed_plan_describe": (_SIZE, [_PTR, _PTR, _SIZE]),
    "heed_scores": (ctypes.c_int, [_PTR, _PTR, _PTR, ctypes.c_int, _PTR]),
    "heed_kv_append": (ctypes.c_int, [_PTR]),
    "heed_problem_print": (_SIZE, [_PTR, _PTR, _SIZE]),
    "heed_problem_parse": (ctypes.c_int, [ctypes.c_char_p, _PTR]),
    "heed_targets": (_SIZE, [_PTR, _SIZE]),
    "heed_version": (ctypes.c_char_p, []),
    "heed_last_error": (ctypes.c_char_p, []),
    "heed_status_name": (ctypes.c_char_p, [ctypes.c_int]),
}
