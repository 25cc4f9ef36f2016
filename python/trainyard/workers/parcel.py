"""What an event carries, to and from its frame."""
from ..ranks.arenas import NoArena
from .buffers import Bundle, Raw, array_of, is_array, raw_of, shape_text, shapes_of
from .connection import BUFFERS_BYTES_MAX, BUFFERS_MAX, DESCRIPTORS_MAX, EVENT, Frame, text_of

_IN_FRAME_MAX = 32 << 10


class Parcel:
    """What is about to be sent. Its large arrays are in memory that others can map; let_go() when it has
    been sent, or not."""

    def __init__(self, payload, arenas):
        self.type, self._arenas, self._lent = "json", arenas, []
        json, arrays = payload, ()
        if isinstance(payload, Bundle):
            self.type, json, arrays = "bundle", payload.json, payload.buffers
        elif is_array(payload):
            self.type, json, arrays = "buffer", None, [payload]
        self.frame = Frame(EVENT, text_of(json))
        if arrays:
            try:
                self._pack([raw_of(each) for each in arrays])
            except BaseException:
                self.let_go()
                raise

    def _pack(self, raws):
        shapes, in_frame, shared = [], [], []
        for raw in raws:
            place = self._place_of(raw) if len(shared) < DESCRIPTORS_MAX else None
            (in_frame if place is None else shared).append(place or raw.memory)
            shapes.append(shape_text(raw, place is not None))
        self.frame.raw = [b"".join(shapes)] + in_frame
        self.frame.shared = shared
        if len(self.frame.raw) > BUFFERS_MAX or sum(map(len, in_frame)) > BUFFERS_BYTES_MAX:
            raise ValueError("more than %d arrays or %d MiB that do not lie in shared memory" % (BUFFERS_MAX - 1, BUFFERS_BYTES_MAX >> 20))

    def _place_of(self, raw: Raw):
        """In memory of ours as it is, or copied there once; None: it goes in the frame."""
        place = self._arenas.place_of(raw.address, raw.nbytes) if raw.address else None
        if place or raw.nbytes <= _IN_FRAME_MAX:
            return place
        try:
            number, places = self._arenas.copy_in([raw.memory])
        except NoArena:
            if raw.nbytes > BUFFERS_BYTES_MAX:
                raise
            return None
        self._lent.append(number)
        return places[0]

    def let_go(self):
        while self._lent:
            self._arenas.release(self._lent.pop())


def payload_of(frame, kind, mapped):
    """What came. Raises ValueError where that is not what it says it is."""
    if not frame.raw:
        return frame.value()
    # All of them first: each is released when it is not used.
    views = [mapped.view(*place) for place in frame.shared]
    raws = [memoryview(each) for each in frame.raw[1:]]
    arrays = []
    for number, is_shared, shape, size in shapes_of(frame.raw[0]):
        memory = (views if is_shared else raws).pop(0) if (views if is_shared else raws) else None
        if memory is None or memory.nbytes != size:
            raise ValueError("it carries a buffer of another size than its shape needs")
        arrays.append(array_of(number, shape, memory))
    return Bundle(frame.value(), arrays) if kind == "bundle" else arrays[0]
