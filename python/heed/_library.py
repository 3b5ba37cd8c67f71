"""Finds libheed, loads it, and turns its status values into exceptions."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from pathlib import Path

from . import _abi

# The library's minor versions differ in their structs until 1.0.
VERSION = "0.1"


def packaged(package_path, name):
    """The file `name` of the installed package, or None. An editable install has
    Python's files where they were written, and these where it was installed."""
    for folder in package_path:
        path = Path(folder) / name
        if path.exists():
            return str(path)
    from importlib import metadata

    try:
        path = Path(metadata.distribution("heed").locate_file(Path("heed") / name))
    except metadata.PackageNotFoundError:
        return None
    return str(path) if path.exists() else None


def _candidates(package_path):
    """Where libheed may be, best first: named, in the wheel, installed."""
    named = os.environ.get("HEED_LIBRARY")
    if named:
        return [named]
    name = "libheed.so." + VERSION
    inside = packaged(package_path, "lib/" + name)
    found = [inside, name] if inside else [name]
    installed = ctypes.util.find_library("heed")
    if installed:
        found.append(installed)
    return found


def _mismatch(library):
    """Why `library` is not the one this package was written for, or None."""
    library.heed_version.restype = ctypes.c_char_p
    version = library.heed_version().decode()
    if version.rsplit(".", 1)[0] != VERSION:
        return f"it is version {version}, this package needs {VERSION}"
    for struct, init in _abi.STRUCTS:
        # Room for a struct that is larger than ours.
        room = (ctypes.c_size_t * 512)()
        getattr(library, init)(room)
        if room[0] != ctypes.sizeof(struct):
            return (
                f"its heed_{struct.__name__.lower()} has {room[0]} bytes, this "
                f"package's {ctypes.sizeof(struct)}"
            )
    return None


def load(package_path):
    """The library, with its functions declared. ImportError, one line, if there
    is none or it is another version's."""
    tried = []
    for path in _candidates(package_path):
        try:
            # CDLL, not PyDLL: other Python threads run during a call.
            library = ctypes.CDLL(path)
        except OSError as error:
            tried.append(f"{path} ({error})" if os.path.exists(path) else path)
            continue
        try:
            why = _mismatch(library)
        except AttributeError:
            why = "it is not libheed"
        if why is not None:
            raise ImportError(f"heed: {path} does not fit: {why}")
        for name, (result, arguments) in _abi.FUNCTIONS.items():
            function = getattr(library, name)
            function.restype = result
            function.argtypes = arguments
        library.path = path
        return library
    raise ImportError(
        "heed: libheed is not installed; tried " + ", ".join(tried)
        + "; install heed's wheel or its CMake package, or name the file in HEED_LIBRARY"
    )


def raise_error(library, status):
    """The exception for a status that is not OK, with the library's line. To be
    called on the thread that failed."""
    line = library.heed_last_error().decode()
    if status == _abi.OUT_OF_MEMORY:
        raise MemoryError(line)
    if status == _abi.INTERNAL:
        raise RuntimeError(line)
    raise ValueError(line)


def text(function, *arguments):
    """What a function that prints as snprintf does prints."""
    size = function(*arguments, None, 0) + 1
    buffer = ctypes.create_string_buffer(size)
    function(*arguments, buffer, size)
    return buffer.value.decode()
