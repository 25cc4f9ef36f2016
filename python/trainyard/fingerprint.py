"""Fingerprints of tasks, by which a yard in its directory again finds that a task has other parameters.

A fingerprint comes from a walk of the task's fields. Pickles would not do: those of a set differ from one
interpreter to the next. What the walk does not know, as an object of a class of its own, has no fingerprint.
"""
import argparse
import dataclasses
import datetime
import decimal
import enum
import fractions
import hashlib
import pathlib
import sys
import types

# The fields of a Task that say nothing of what it computes.
_OF_THE_YARD = {"_options", "_known_as", "_directory", "result", "status", "message", "traceback"}
_BY_THEIR_TEXT = (type(None), bool, float, complex, str, range, decimal.Decimal, fractions.Fraction,
                  datetime.date, datetime.time, datetime.datetime, datetime.timedelta)
_LENGTH = 32


class Unknown(TypeError):
    """A field holds what the walk does not know."""


def of_task(task, group_options):
    """A few letters and digits; Unknown where a field of the task cannot be walked. `fingerprint` in its
    options, or in those of its group, stands for its fields."""
    given = task._options.get("fingerprint", group_options.get("fingerprint"))
    if given is not None:
        return _hash(_encoded(("given", given)))
    fields = []
    for name, value in sorted(_attributes(task).items()):
        if name not in _OF_THE_YARD:
            try:
                fields.append((name, _encoded(value)))
            except (Unknown, RecursionError) as why:
                what = why if isinstance(why, Unknown) else "what contains itself, or is nested too deeply"
                raise Unknown("its field '%s' is or holds %s" % (name, what)) from why
    env = {str(name): str(value) for options in (group_options, task._options)
           for name, value in (options.get("env") or {}).items()}
    return _hash(_encoded((type(task).__qualname__, fields, env)))


def _attributes(value):
    """The fields of an object by name, also those that its class keeps in `__slots__`."""
    found = {}
    for kind in reversed(type(value).__mro__):
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name.startswith("__") and not name.endswith("__"):
                name = "_%s%s" % (kind.__name__.lstrip("_"), name)  # As Python itself names private fields.
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return {**found, **getattr(value, "__dict__", {})}


def _hash(encoded):
    return hashlib.sha256(encoded).hexdigest()[:_LENGTH]


def _joined(kind, parts):
    """Each part with its length, so that no two lists of parts are alike."""
    return b"".join([kind.encode(), b"(", *(b"%d:%b" % (len(part), part) for part in parts), b")"])


def _named(kind):
    return "%s.%s" % ("__main__" if kind.__module__ == "__mp_main__" else kind.__module__, kind.__qualname__)


def _encoded(value):
    """Bytes that are the same in every interpreter, and other ones for another value."""
    kind = type(value)
    name = _named(kind)
    if isinstance(value, enum.Enum):
        # Interpreters differ in the names of several flags together.
        if isinstance(value, enum.Flag):
            return _joined(name, [repr(value.value).encode()])
        try:
            return _joined(name, [value.name.encode(), _encoded(value.value)])
        except Unknown:
            return _joined(name, [value.name.encode()])
    if kind is int:
        return _joined(name, [b"%x" % value])  # Python limits the digits of decimal text.
    if kind in _BY_THEIR_TEXT:
        return _joined(name, [repr(value).encode("utf-8", "surrogatepass")])
    if isinstance(value, pathlib.PurePath):
        return _joined("path", [str(value).encode("utf-8", "surrogateescape")])
    if kind in (bytes, bytearray):
        return _joined(name, [bytes(value)])
    if kind in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields")):
        return _joined(name, map(_encoded, value))
    if kind in (set, frozenset):
        return _joined(name, sorted(map(_encoded, value)))
    if kind is dict or name == "collections.OrderedDict":
        return _joined(name, sorted(_joined("", [_encoded(key), _encoded(item)]) for key, item in value.items()))
    if kind in (argparse.Namespace, types.SimpleNamespace):
        return _joined(name, [_encoded(vars(value))])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # Also what was set on it that is no field of its class.
        return _joined(name, [_encoded(pair) for pair in sorted(_attributes(value).items())])
    return _joined(name, _array_parts(value, name))


def _array_parts(value, name):
    """The type, the shape and the bytes of an array. The modules of arrays are not imported for it: where
    there is an array, its module is there."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if name == "array.array":
        return [value.typecode.encode(), value.tobytes()]
    if torch is not None and type(value) in (torch.Tensor, torch.nn.Parameter):
        try:
            value = value.detach().cpu().numpy()
        except Exception as error:  # bfloat16 and sparse tensors, of which NumPy knows nothing.
            raise Unknown("a %s, of which NumPy can make no array" % name) from error
    if (numpy is not None and (type(value) is numpy.ndarray or isinstance(value, numpy.generic))
            and not value.dtype.hasobject):
        return [str(value.dtype.descr).encode(), repr(value.shape).encode(), hashlib.sha256(value.tobytes()).digest()]
    raise Unknown("a %s" % name)
