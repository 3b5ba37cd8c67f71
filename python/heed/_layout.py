"""From views to a problem and the strides of a call: the shapes' rules."""

from __future__ import annotations

from . import _abi, _array


def rank4(view, name):
    """(shape, strides in elements) of q, k, v or out as [batch, heads, tokens,
    dim]; missing axes in front have size 1."""
    _, kind, shape, strides, _ = view
    if kind not in (_array.F32, _array.F16, _array.BF16):
        found = _array.NAMES.get(kind, kind)
        raise ValueError(
            f"{name} has type {found}; expected float32, float16 or bfloat16 "
            "(or its bits as uint16)"
        )
    if not 2 <= len(shape) <= 4:
        raise ValueError(
            f"{name} has shape {shape}; expected (batch, heads, tokens, dim), the "
            "first two optional"
        )
    missing = 4 - len(shape)
    strides = _array.elements(strides, _array.BYTES[kind], name)
    return (1,) * missing + tuple(shape), (0,) * missing + strides


def expect_shape(view, name, shape):
    if tuple(view[2]) != tuple(shape):
        raise ValueError(f"{name} has shape {view[2]}; expected {tuple(shape)}")


def expect_kind(view, name, kind):
    if view[1] != kind:
        found = _array.NAMES.get(view[1], view[1])
        raise ValueError(
            f"{name} has type {found}; expected {_array.NAMES[kind]}, as q has"
        )


def mask_kind(view, kind):
    """heed_mask of a mask beside a q of type `kind`."""
    if view[1] == _array.BOOL:
        return _abi.MASK_BOOL
    if view[1] == _array.F32:
        return _abi.MASK_F32
    if view[1] == kind:
        return _abi.MASK_DTYPE
    found = _array.NAMES.get(view[1], view[1])
    raise ValueError(
        f"attn_mask has type {found}; expected bool, float32 or {_array.NAMES[kind]}"
    )


def mask_strides(view, extent):
    """Strides in elements with which a mask broadcasts to `extent`, four sizes."""
    _, kind, shape, strides, _ = view
    if len(shape) > 4:
        raise ValueError(f"attn_mask has shape {shape}; expected at most four axes")
    strides = _array.elements(strides, _array.BYTES[kind], "attn_mask")
    missing = 4 - len(shape)
    shape = (1,) * missing + tuple(shape)
    strides = (0,) * missing + strides
    for have, want in zip(shape, extent):
        if have != want and have != 1:
            raise ValueError(
                f"attn_mask has shape {view[2]}; expected one that broadcasts to "
                f"{tuple(extent)}"
            )
    return tuple(
        0 if have == 1 and want != 1 else stride
        for have, want, stride in zip(shape, extent, strides)
    )


_CORNERS = {
    "top_left": _abi.TOP_LEFT,
    "bottom_right": _abi.BOTTOM_RIGHT,
}


def placement(value, name, len_q, len_k):
    """heed_causal or heed_align of what a user writes: a corner's name, True
    where there is but one diagonal, or an offset."""
    corner = _CORNERS.get(value) if isinstance(value, str) else None
    if corner is not None:
        return corner
    if value is True:
        if len_q == len_k:
            return _abi.TOP_LEFT
        raise ValueError(
            f"{name} is True with {len_q} queries and {len_k} keys; expected "
            "'top_left' (key j <= query i, PyTorch's is_causal) or 'bottom_right' "
            "(j <= i + keys - queries, a KV cache), or an offset"
        )
    if isinstance(value, str):
        raise ValueError(
            f"{name} is {value!r}; expected 'top_left', 'bottom_right', an offset or "
            "offsets"
        )
    return _abi.OFFSET


def window_sides(window):
    """(left, right) of a window, None or -1 = no limit."""
    try:
        left, right = window
    except (TypeError, ValueError):
        raise ValueError(
            f"window is {window!r}; expected (left, right), keys seen on either side "
            "of a query's own, None = no limit"
        ) from None
    return -1 if left is None else int(left), -1 if right is None else int(right)
