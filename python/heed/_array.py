"""Looks at an array of whatever library where it lies, without a copy.

A *view* is a plain tuple ``(address, kind, shape, strides, owner)``: the address
of element 0, the element type (a key of `NAMES`, or the type's name if it is
none of them), sizes, strides in BYTES, and what keeps the memory alive.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np

from . import _abi

F32, F16, BF16 = _abi.F32, _abi.F16, _abi.BF16
BOOL = 4
NAMES = {F32: "float32", F16: "float16", BF16: "bfloat16", BOOL: "bool"}
KINDS = {
    "float32": F32, "f32": F32, "float": F32,
    "float16": F16, "f16": F16, "half": F16,
    "bfloat16": BF16, "bf16": BF16,
}  # fmt: skip
BYTES = {F32: 4, F16: 2, BF16: 2, BOOL: 1}

# A uint16 holds the bits of a bfloat16, which NumPy has not; a byte is a bool.
_NUMPY = {
    np.dtype(np.float32): F32,
    np.dtype(np.float16): F16,
    np.dtype(np.uint16): BF16,
    np.dtype(np.bool_): BOOL,
    np.dtype(np.uint8): BOOL,
}

# Hashing a dtype takes a microsecond. NumPy has one object of each plain type,
# and those above stay alive, so where an id matches it is that type.
_NUMPY_IDS = {id(dtype): kind for dtype, kind in _NUMPY.items()}


# Where an array's first element lies is the first field of NumPy's PyArrayObject,
# part of its binary interface: read there it takes a third of the time that
# `array.ctypes` takes, and a call asks four times.
_HEAD = object.__basicsize__
_pointer_at = ctypes.c_void_p.from_address


def _address_in_place(array):
    return _pointer_at(id(array) + _HEAD).value


def _address_by_name(array):
    return array.ctypes.data


def _find_address():
    """The first where objects lie at their ids and arrays look as they should."""
    probe = np.zeros(4, np.float32)[1:]
    in_place = (
        sys.implementation.name == "cpython"
        and _address_in_place(probe) == probe.ctypes.data
    )
    return _address_in_place if in_place else _address_by_name


address_of = _find_address()


def _numpy_kind(dtype):
    if dtype in _NUMPY:
        return _NUMPY[dtype]
    if dtype.name == "bfloat16" and dtype.itemsize == 2:  # ml_dtypes
        _NUMPY[dtype] = BF16
        return BF16
    return str(dtype)


_TORCH = {}


def _torch_kind(dtype):
    if not _TORCH:
        torch = sys.modules["torch"]
        for kind, name in NAMES.items():
            _TORCH[getattr(torch, name)] = kind
        _TORCH[torch.uint8] = BOOL
    return _TORCH.get(dtype, str(dtype))


def torch_view(tensor):
    """The view of a strided tensor on the CPU that needs no grad."""
    dtype = tensor.dtype
    kind = _TORCH.get(dtype) or _torch_kind(dtype)
    size = BYTES.get(kind, 1)
    strides = tuple([stride * size for stride in tensor.stride()])
    return tensor.data_ptr(), kind, tensor.shape, strides, tensor


def _torch_view(tensor, name):
    if tensor.device.type != "cpu" or tensor.layout != sys.modules["torch"].strided:
        raise ValueError(
            f"{name} is a {tensor.layout} tensor on {tensor.device}; expected a "
            "strided one on the CPU"
        )
    if tensor.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise ValueError(
            f"{name} requires grad; expected torch.no_grad() or a detached tensor, "
            "since heed has no backward pass"
        )
    return torch_view(tensor.resolve_neg())


class _DlTensor(ctypes.Structure):
    """DLTensor of dlpack.h, with which a DLManagedTensor begins."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_DL_CPU = 1
_DL_KINDS = {(2, 32): F32, (2, 16): F16, (4, 16): BF16, (6, 8): BOOL, (1, 8): BOOL}

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def dense_strides(shape, itemsize):
    """Strides in bytes of a C-contiguous array."""
    strides = []
    for size in reversed(shape):
        strides.append(itemsize)
        itemsize *= size
    return tuple(reversed(strides))


def _dlpack_view(array, name):
    device = array.__dlpack_device__()[0]
    if device != _DL_CPU:
        raise ValueError(f"{name} is on DLPack device {int(device)}; expected 1, the CPU")
    # A capsule that nobody renames frees what it holds when it goes itself.
    capsule = array.__dlpack__()
    tensor = _DlTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[: tensor.ndim])
    size = tensor.bits // 8
    kind = _DL_KINDS.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if kind is None:
        kind = f"DLPack type ({tensor.code}, {tensor.bits}, {tensor.lanes})"
    if tensor.strides:
        strides = tuple(stride * size for stride in tensor.strides[: tensor.ndim])
    else:
        strides = dense_strides(shape, size)
    address = (tensor.data or 0) + tensor.byte_offset
    return address, kind, shape, strides, (array, capsule)


def view(array, name):
    """The view of `array`; `name` is what errors call it."""
    if isinstance(array, np.ndarray):
        dtype = array.dtype
        kind = _NUMPY_IDS.get(id(dtype)) or _numpy_kind(dtype)
        return address_of(array), kind, array.shape, array.strides, array
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return _torch_view(array, name)
    if hasattr(array, "__dlpack__"):
        return _dlpack_view(array, name)
    if hasattr(array, "__array_interface__"):
        return view(np.asarray(array), name)
    raise ValueError(
        f"{name} is a {type(array).__name__}; expected a NumPy array, or one with "
        "__dlpack__ or __array_interface__"
    )


def check_writable(array, name):
    """ValueError if `array` says that it may not be written."""
    if isinstance(array, np.ndarray):
        read_only = not array.flags.writeable
    else:
        interface = getattr(array, "__array_interface__", None)
        read_only = interface is not None and interface["data"][1]
    if read_only:
        raise ValueError(f"{name} is read-only; expected a writable array")


def elements(strides, itemsize, name):
    """Strides in elements. ValueError where bytes are no whole elements."""
    if any(stride % itemsize for stride in strides):
        raise ValueError(
            f"{name} has strides of {strides} bytes; expected multiples of {itemsize}"
        )
    return tuple(stride // itemsize for stride in strides)


def empty(shape, kind, like):
    """(array, its view): an uninitialised array of `kind` and of the library that
    `like` is of, torch's tensors, NumPy's arrays else. bfloat16 in NumPy is what
    `like` has, ml_dtypes' or uint16."""
    if not isinstance(like, np.ndarray):
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(like, torch.Tensor):
            tensor = like.new_empty(shape, dtype=getattr(torch, NAMES[kind]))
            return tensor, _torch_view(tensor, "out")
    array = np.empty(shape, numpy_dtype(kind, like))
    return array, (address_of(array), kind, array.shape, array.strides, array)


def like(array, model):
    """A NumPy array as what `model` is of, without a copy."""
    if not isinstance(model, np.ndarray):
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(model, torch.Tensor):
            return torch.from_numpy(array)
    return array


def numpy_dtype(kind, like=None):
    """The NumPy type of `kind`."""
    if kind == F32:
        return np.float32
    if kind == F16:
        return np.float16
    if isinstance(like, np.ndarray):
        return like.dtype
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(np.uint16)
    return np.dtype(ml_dtypes.bfloat16)


def array_of(values, dtype, name, shape):
    """`values` as a C-contiguous NumPy array of `dtype`, copied if it has to be;
    ValueError if its shape is not `shape` (None: any number)."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        values = values.detach()
        # NumPy has no bfloat16 to take it as it is.
        values = (values.float() if values.is_floating_point() else values).numpy()
    array = np.ascontiguousarray(values, dtype=dtype)
    if len(array.shape) != len(shape) or any(
        want is not None and have != want for have, want in zip(array.shape, shape)
    ):
        want = ", ".join("n" if size is None else str(size) for size in shape)
        raise ValueError(f"{name} has shape {array.shape}; expected ({want})")
    return array
