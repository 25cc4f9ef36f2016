"""Memory of other workers that is mapped here, for as long as an array over it is in use."""
import collections
import ctypes
import fcntl
import mmap
import os
import weakref

_F_GET_SEALS, _SEAL_SHRINK = 1034, 0x2
_UNNAMED_MAX, _MAPPED_MAX, _BYTES_MAX = 16, 64, 64 << 30

# The mmap module gives no address of what cannot be written to.
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_FAILED = ctypes.c_void_p(-1).value


class _Map:
    """A whole arena of another worker. Goes with the last one that has it."""

    def __init__(self, descriptor):
        self.size = os.fstat(descriptor).st_size
        # What could be cut short while it is read would end this process by a signal.
        if not 0 < self.size <= _BYTES_MAX or not fcntl.fcntl(descriptor, _F_GET_SEALS) & _SEAL_SHRINK:
            raise ValueError("an arena that could be cut short")
        self.address = _libc.mmap(None, self.size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if self.address in (None, _FAILED):
            raise OSError(ctypes.get_errno(), "cannot map an arena of %d bytes" % self.size)
        unmaps = weakref.finalize(self, _libc.munmap, self.address, self.size)
        unmaps.atexit = False  # Arrays may be in use to the end.


class Mapped:
    """Of the thread that reads; what goes with an array may go on any thread."""

    def __init__(self, release):
        self._release = release  # Called with the number of an arena that is not read any more.
        self._unnamed = collections.deque()
        self._maps = collections.OrderedDict()  # Those named last stand last.

    def take(self, descriptors):
        self._unnamed.extend(descriptors)
        if len(self._unnamed) > _UNNAMED_MAX:
            raise ValueError("more descriptors than frames have named")

    def view(self, number, offset, size):
        """Of a buffer in an arena. The arena is released with the last that has the memory, and also
        if this raises what is wrong with the buffer."""
        mapped = self._map_of(number)
        if offset > mapped.size or size > mapped.size - offset:
            self._release(number)
            raise ValueError("a buffer that does not lie within its arena")
        if size == 0:
            self._release(number)
            return memoryview(b"")
        memory = (ctypes.c_ubyte * size).from_address(mapped.address + offset)
        gone = weakref.finalize(memory, self._let_go, number, mapped)
        gone.atexit = False
        return memoryview(memory).toreadonly().cast("B")

    def _let_go(self, number, mapped):
        del mapped
        self._release(number)

    def _map_of(self, number):
        if number in self._maps:
            self._maps.move_to_end(number)
            return self._maps[number]
        if not self._unnamed:
            raise ValueError("arena %d was not handed over" % number)
        descriptor = self._unnamed.popleft()
        try:
            mapped = _Map(descriptor)
        finally:
            os.close(descriptor)
        if len(self._maps) == _MAPPED_MAX:
            self._maps.popitem(last=False)
        self._maps[number] = mapped
        return mapped

    def close(self):
        while self._unnamed:
            os.close(self._unnamed.popleft())
