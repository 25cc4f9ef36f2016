"""What a rank gets and returns, and the arrays in it: those of NumPy, of torch, or plain memory."""


class Shareable:
    """What a rank gets and returns: `values`, a dict of JSON, and `buffers`, a dict of arrays.

    The arrays that come are NumPy's if there is NumPy, else memoryviews. They lie in memory that all
    ranks share: they cannot be written, and mean something until execute() returns."""

    def __init__(self, values=None, buffers=None, code="ok", message="", headers=None):
        self.values = dict(values or {})
        self.buffers = dict(buffers or {})
        self.headers = dict(headers or {})
        self.cookies = {}
        self.code = code
        self.message = message

    def torch(self, name):
        """A buffer that came as a tensor that shares its memory. It must not be written to. Of the
        unsigned numbers torch has uint8 alone."""
        import warnings

        import torch
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # That it is not writable.
            buffer, dtype, shape = self._raw[name]
            dtype, shape = getattr(torch, dtype), tuple(shape)
            if not len(buffer):
                return torch.empty(shape, dtype=dtype)
            return torch.frombuffer(buffer, dtype=dtype).reshape(shape)


def as_shareable(returned):
    if isinstance(returned, Shareable):
        return returned
    if returned is None:
        return Shareable()
    if not isinstance(returned, dict):
        return Shareable(code="execution-result-error",
                         message="execute() returned %s, and no dict" % type(returned).__name__)
    arrays = {name: value for name, value in returned.items()
              if getattr(value, "shape", ()) != () and hasattr(value, "dtype")}
    return Shareable({name: value for name, value in returned.items() if name not in arrays}, arrays)


def array_over(memory, dtype, shape):
    try:
        import numpy
    except ImportError:
        return memory
    # NumPy has no bfloat16: its bits.
    return numpy.frombuffer(memory, "uint16" if dtype == "bfloat16" else dtype).reshape(shape)


def contiguous(value):
    """As an array that lies in one piece, and its dtype."""
    if hasattr(value, "detach"):  # A tensor.
        tensor = value.detach().cpu().contiguous()
        if str(tensor.dtype) == "torch.bfloat16":
            import torch
            return tensor.view(torch.int16).numpy().view("uint16"), "bfloat16"
        value = tensor.numpy()
    import numpy
    value = numpy.asarray(value)
    shape = value.shape
    value = numpy.ascontiguousarray(value, value.dtype.newbyteorder("="))
    return value.reshape(shape), value.dtype.name


def address_of(value):
    return value.__array_interface__["data"][0]
