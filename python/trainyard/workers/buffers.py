"""Arrays as events carry them: their bytes, and of which type and shape these are. Of NumPy, of torch,
or plain memory (bytes, array.array, memoryview), which needs neither."""
import struct
import sys

from ..ranks.shareable import contiguous

# By their numbers in a frame.
_TYPES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16",
          "float32", "float64")
_SIZES = (1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8)
# As memory without NumPy says them, by the size of one where that differs between machines.
_FORMATS = ("?", "B", "b", "H", "h", "I", "i", "Q", "q", "e", "H", "f", "d")
_BY_FORMAT = dict(zip(_FORMATS, range(13)), H=3, c=1, L=7 if struct.calcsize("L") == 8 else 5,
                  l=8 if struct.calcsize("l") == 8 else 6)
_SHARED = 0x80
_DIMENSIONS_MAX = 32


class Bundle:
    """What belongs together: a JSON object, and arrays for which numbers in it may stand."""

    def __init__(self, json, buffers=()):
        self.json, self.buffers = json, list(buffers)


class Raw:
    """An array on its way: its memory, in one piece."""

    def __init__(self, kind, shape, memory, address=None):
        self.kind, self.shape, self.memory, self.address = kind, shape, memory, address
        self.nbytes = memory.nbytes


def is_array(value):
    """Whether it goes as a buffer and not as JSON. Nothing is imported to find it out."""
    if isinstance(value, (bytes, bytearray, memoryview)) or type(value).__name__ == "array":
        return True
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    return (numpy is not None and isinstance(value, getattr(numpy, "ndarray", ()))) or \
        (torch is not None and isinstance(value, getattr(torch, "Tensor", ())))


def dtype_of(dtype):
    """NumPy's, of a type that buffers have."""
    import numpy
    try:
        checked = numpy.dtype(dtype)
    except (TypeError, ValueError):
        checked = None
    if checked is None or checked.name not in _TYPES:
        names = ", ".join(name for name in _TYPES if name != "bfloat16")  # Which NumPy has not.
        raise TypeError("dtype must be one of %s, not %s" % (names, dtype))
    return checked


def raw_of(value):
    if hasattr(value, "__array_interface__") or hasattr(value, "detach"):
        array, name = contiguous(value)
        if name not in _TYPES:
            raise TypeError("an array of %s cannot be sent, but one of %s" % (name, ", ".join(_TYPES)))
        memory = memoryview(array.reshape(-1).view("uint8")) if array.size else memoryview(b"")
        return Raw(_TYPES.index(name), array.shape, memory, array.__array_interface__["data"][0])
    memory = memoryview(value)
    kind = _BY_FORMAT.get(memory.format.lstrip("@="))
    if kind is None or not memory.c_contiguous:
        raise TypeError("memory of the format '%s' cannot be sent" % memory.format)
    return Raw(kind, memory.shape, memory.cast("B") if memory.nbytes else memoryview(b""))


def shape_text(raw, shared):
    return struct.pack("<BB%dq" % len(raw.shape), raw.kind | (_SHARED if shared else 0), len(raw.shape), *raw.shape)


def shapes_of(text):
    """[(type, whether it is shared, shape, bytes)] of the first buffer of an event."""
    shapes, at = [], 0
    while at < len(text):
        kind, dimensions = struct.unpack_from("<BB", text, at)
        shape = struct.unpack_from("<%dq" % dimensions, text, at + 2)
        at += 2 + 8 * dimensions
        size = _SIZES[kind & ~_SHARED] if kind & ~_SHARED < len(_SIZES) else -1
        for each in shape:
            size *= each if each >= 0 else -1
        if size < 0 or dimensions > _DIMENSIONS_MAX:
            raise ValueError("it carries a buffer of a type that is not known")
        shapes.append((kind & ~_SHARED, bool(kind & _SHARED), shape, size))
    return shapes


def array_of(kind, shape, memory):
    """NumPy's where there is NumPy, else a memoryview. It cannot be written to."""
    try:
        import numpy
    except ImportError:
        return memory.cast(_FORMATS[kind], shape) if all(shape) and shape else memory.cast(_FORMATS[kind])
    # NumPy has no bfloat16: its bits.
    dtype = "uint16" if _TYPES[kind] == "bfloat16" else _TYPES[kind]
    if not memory.nbytes:
        empty = numpy.empty(shape, dtype)
        empty.flags.writeable = False
        return empty
    return numpy.frombuffer(memory, dtype).reshape(shape)
