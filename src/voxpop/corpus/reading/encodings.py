"""Text in whatever encoding, as UTF-8: what is not of that encoding is found where it stands, and never quoted."""

import codecs
import io
from typing import Any, final

UTF8 = "utf-8"
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks, longer ones first: the shorter begin alike."""
LONGEST_MARK = 4


def known_encoding(name: str) -> str | None:
    """Return Python's own name of an encoding of text, None where it knows none.

    Example:
        >>> known_encoding("Windows-1252"), known_encoding("UTF8"), known_encoding("base64")
        ('cp1252', 'utf-8', None)
    """
    try:
        "".encode(name)  # codecs that are none of text are refused here
        found = codecs.lookup(name).name
    except (LookupError, UnicodeError, ValueError):
        return None
    return UTF8 if found == "utf-8-sig" else found


def marked_encoding(head: bytes) -> str:
    """Return the encoding that the first bytes of a file say, which is UTF-8 where they say nothing.

    Example:
        >>> marked_encoding("a,b".encode("utf-16")), marked_encoding(b"a,b")
        ('utf-16', 'utf-8')
    """
    return next((name for mark, name in MARKS.items() if head.startswith(mark)), UTF8)


@final
class Transcoded(io.RawIOBase):
    """A stream of bytes in another encoding, as UTF-8 and without its byte order mark.

    Raises:
        UnicodeError: from a read, where what comes next is not of the encoding; all before it has been read by then.
    """

    def __init__(self, stream: Any, encoding: str) -> None:
        name = "utf-8-sig" if encoding == UTF8 else encoding
        self._stream, self._decoder, self._encoding = stream, codecs.getincrementaldecoder(name)(), name
        self._failure: UnicodeError | None = None
        self._left = b""

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes."""
        data = self._left or self.read(len(buffer))
        taken, self._left = data[: len(buffer)], data[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)

    def read(self, size: int = -1) -> bytes:
        """Return what about `size` bytes of the stream are in UTF-8; nothing at the end."""
        text, data = "", b"more"
        while data and not text and self._failure is None:
            data = bytes(self._stream.read() if size < 0 else self._stream.read(size))
            text = self._decoded(data)
        if self._failure is not None and not text:
            raise self._failure
        return text.encode(UTF8)

    def _decoded(self, data: bytes) -> str:
        try:
            return self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            self._failure = error
            return self._before(error)
        except UnicodeError as error:
            self._failure = error
            return ""

    def _before(self, error: UnicodeDecodeError) -> str:
        """Return what could be read of a block, so that its rows are counted."""
        # Tables of letters all call themselves "charmap"; of the others the error knows in which order bytes come.
        name = self._encoding if error.encoding == "charmap" else error.encoding
        try:
            return error.object[: error.start].decode(name).removeprefix("\ufeff")
        except UnicodeError:
            return ""
