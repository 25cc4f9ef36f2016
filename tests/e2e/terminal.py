"""A program at a terminal of its own, as a person has it: what is typed goes in, what is shown comes out."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios

from yard import wait_until


def without_codes(text):
    """The text without the codes for cursor, colours and titles."""
    text = re.sub(r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)", "", text)
    return re.sub(r"\x1b[\[(][0-9;?>=]*[A-Za-z]|\x1b[=>]|[\x07\x00\x0e\x0f]", "", text)


class Terminal:
    def __init__(self, command, directory, environment, columns=160):
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            try:
                os.chdir(directory)
                os.execvpe(command[0], command, environment)
            finally:
                os._exit(127)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self.shown = ""
        self.code = None

    def type(self, text):
        os.write(self.terminal, text.encode())

    def look(self, seconds=0.0):
        """Takes in what has been shown; False when nothing more can come."""
        if select.select([self.terminal], [], [], seconds)[0]:
            try:
                piece = os.read(self.terminal, 1 << 16)
            except OSError:  # The other end is closed.
                return False
            self.shown += piece.decode(errors="replace")
            return bool(piece)
        return True

    def until(self, holds, what):
        """Waits until holds() gives something true of what is shown, and returns it."""
        def now():
            is_open = self.look()
            value = holds()
            if not value and not is_open:
                raise AssertionError(f"nothing more is shown, waiting for {what}")
            return value
        try:
            return wait_until(what, now)
        except AssertionError as error:
            raise AssertionError(f"{error}; shown is {self.shown!r}") from None

    def until_shown(self, text, after=0):
        return self.until(lambda: text in without_codes(self.shown[after:]), repr(text))

    def modes(self):
        return termios.tcgetattr(self.terminal)

    def foreground(self):
        """The process group that has the terminal."""
        return os.tcgetpgrp(self.terminal)

    def close(self):
        if self.code is None:
            for _ in range(2):
                try:
                    os.killpg(self.child, signal.SIGKILL)
                except OSError:
                    pass
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])
        os.close(self.terminal)
