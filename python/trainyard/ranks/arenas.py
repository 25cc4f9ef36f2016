"""Memory of a rank's own that the parent maps, so that large buffers need not travel."""
import ctypes
import fcntl
import mmap
import os
import threading
import weakref

_SEALS = 0x2 | 0x4 | 0x10 | 0x1  # SHRINK, GROW, FUTURE_WRITE, SEAL
_F_ADD_SEALS = 1033


class NoArena(RuntimeError):
    """All of them are in use."""


class _Block:
    """A piece of an arena, as NumPy sees memory. It lives as long as an array over it."""


class Arenas:
    """Memory of ours that the parent maps: used again when nobody has it any more."""

    _SMALLEST = 64 << 10
    _MAX = 16

    def __init__(self):
        self._arenas = {}  # number: [map, address, size, holders, descriptor]
        self._last = 0
        self._sent = set()
        self._held = {}  # number: how often others have it.
        # Of all threads; the garbage collector may call release() at any moment.
        self._lock = threading.RLock()

    def alloc(self, shape, dtype):
        import numpy
        dtype = numpy.dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        size = dtype.itemsize
        for each in shape:
            size *= each
        number, address = self._lend(size)
        block = _Block()
        block.__array_interface__ = {"data": (address, False), "shape": shape,
                                     "typestr": dtype.str, "version": 3}
        weakref.finalize(block, self.release, number)
        return numpy.asarray(block)

    def place_of(self, address, size):
        """(arena, offset, size) of memory that is in one."""
        with self._lock:
            for number, (_, start, length, _, _) in self._arenas.items():
                if start <= address and address + size <= start + length:
                    return number, address - start, size
        return None

    def copy_in(self, arrays):
        """Copies them into one arena, which is the parent's then: their places."""
        total = sum(_aligned(each.nbytes) for each in arrays)
        number, _ = self._lend(total)
        places, at = [], 0
        try:
            with memoryview(self._arenas[number][0]) as memory:
                for each in arrays:
                    if each.nbytes:
                        memory[at:at + each.nbytes] = memoryview(each).cast("B")
                    places.append((number, at, each.nbytes))
                    at += _aligned(each.nbytes)
        except BaseException:  # Not every array has bytes to be read: one of dates has not.
            self.release(number)
            raise
        return number, places

    def send(self, places):
        """They are about to be sent: the descriptors that go with them."""
        descriptors = []
        with self._lock:
            for number, _, _ in places:
                self._arenas[number][3] += 1
                self._held[number] = self._held.get(number, 0) + 1
                if number not in self._sent:
                    self._sent.add(number)
                    descriptors.append(self._arenas[number][4])
        return descriptors

    def release(self, number):
        with self._lock:
            self._arenas[number][3] -= 1

    def released(self, number):
        """Another one has released it, to which it was sent."""
        with self._lock:
            self._held[number] -= 1
            self.release(number)

    def is_held_beyond(self, numbers):
        """Whether others have more than these arenas, each as often as it is here."""
        with self._lock:
            held = dict(self._held)
        for number in numbers:
            held[number] = held.get(number, 0) - 1
        return any(times > 0 for times in held.values())

    def _lend(self, size):
        with self._lock:
            free = [(arena[2], number) for number, arena in self._arenas.items() if arena[3] == 0]
            fit = [one for one in free if one[0] >= size]
            if fit:
                number = min(fit)[1]
            else:
                if len(self._arenas) == self._MAX:
                    if not free:
                        raise NoArena("%d buffers are in use" % self._MAX)
                    self._drop(min(free)[1])
                number = self._make(max(1 << (max(size, 1) - 1).bit_length(), self._SMALLEST))
            self._arenas[number][3] += 1
            return number, self._arenas[number][1]

    def _drop(self, number):
        """Its number is not used again, so that the parent cannot take another one for it."""
        mapped, _, _, _, descriptor = self._arenas.pop(number)
        self._held.pop(number, None)
        mapped.close()
        os.close(descriptor)

    def _make(self, size):
        descriptor = os.memfd_create("trainyard-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, size)
        mapped = mmap.mmap(descriptor, size)
        fcntl.fcntl(descriptor, _F_ADD_SEALS, _SEALS)
        # Without a hold on the map, which could not be closed then.
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        self._last += 1
        self._arenas[self._last] = [mapped, address, size, 0, descriptor]
        return self._last


def _aligned(size):
    return (size + 63) // 64 * 64
