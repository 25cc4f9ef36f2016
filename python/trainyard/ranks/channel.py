"""Frames and descriptors over a socket, as docs/protocol.md has them. One thread receives; any may
send."""
import array
import json
import socket
import struct
import threading

from ..client import _FIELDS_MAX, _PREFIX, _VERSION, Refused, _plain

REPLY, RELEASE = 4, 8  # Kinds of frames that only ranks have.
DESCRIPTORS_MAX = 16

# Made once: json.dumps() would make it anew for each message.
_to_json = json.JSONEncoder(default=_plain).encode
_from_json = json.JSONDecoder().decode


class Frame:
    def __init__(self, kind, topic, sequence, fields, raw, shared):
        self.kind, self.topic, self.sequence = kind, topic, sequence
        self.fields, self.raw, self.shared = fields, raw, shared


class Channel:
    """Frames and descriptors over a socket."""

    def __init__(self, connection):
        self.socket = connection
        self.descriptors = []
        self._data = bytearray()
        self._sending = threading.Lock()
        self._room = socket.CMSG_SPACE(4 * DESCRIPTORS_MAX)

    @staticmethod
    def encode(fields):
        text = _to_json(fields).encode("ascii")
        if len(text) > _FIELDS_MAX:
            raise ValueError("%d bytes of values, at most %d can be sent" % (len(text), _FIELDS_MAX))
        return text

    def send(self, kind, sequence=0, fields=b"", raw=(), shared=(), descriptors=(), topic=0):
        text = fields if isinstance(fields, bytes) else self.encode(fields)
        prefix = _PREFIX.pack(b"TYRD", _VERSION, kind, 0, topic, sequence, 0, len(text), len(raw),
                              len(shared), sum(map(len, raw)))
        if not raw and not shared:
            with self._sending:
                return self.socket.sendall(prefix + text)
        parts = [prefix]
        parts += [struct.pack("<Q", len(each)) for each in raw]
        parts += [struct.pack("<QQQ", *each) for each in shared]
        frame = b"".join(parts + [text] + list(raw))
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        with self._sending:
            sent = self.socket.sendmsg([frame], rights) if descriptors else 0
            self.socket.sendall(memoryview(frame)[sent:])

    def receive(self):
        self._fill(_PREFIX.size)
        magic, version, kind, _, topic, sequence, _, length, count, sharing, size = \
            _PREFIX.unpack_from(self._data)
        if magic != b"TYRD" or version != _VERSION:
            raise Refused("this is not the protocol that this client speaks")
        head = _PREFIX.size + 8 * count + 24 * sharing
        self._fill(head + length + size)
        fields = _from_json(self._data[head:head + length].decode()) if length else {}
        raw, shared, at = [], (), head + length
        if sharing:
            shared = list(struct.iter_unpack("<QQQ", self._data[_PREFIX.size + 8 * count:head]))
        if count:
            for each in struct.unpack_from("<%dQ" % count, self._data, _PREFIX.size):
                raw.append(bytes(self._data[at:at + each]))
                at += each
        del self._data[:at]
        return Frame(kind, topic, sequence, fields, raw, shared)

    def _fill(self, count):
        while len(self._data) < count:
            data, rights, _, _ = self.socket.recvmsg(65536, self._room, socket.MSG_CMSG_CLOEXEC)
            for level, kind, bytes_ in rights:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    got = array.array("i")
                    got.frombytes(bytes_[:len(bytes_) - len(bytes_) % got.itemsize])
                    self.descriptors += got
            if not data:
                raise Refused("the parent is gone")
            self._data += data
