#!/usr/bin/env python3
"""Runs a command in a terminal and draws what it showed, as an SVG that plays it again.

    tools/terminal_svg.py docs/pictures/run.svg trainyard run sweep.yaml

Knows the little that trainyard writes: lines, carriage return, erase to the end of the line, colours.
What a viewer without animation shows is the last picture.
"""
import os
import pty
import re
import shlex
import struct
import sys
import fcntl
import termios
import time
from xml.sax.saxutils import escape

COLUMNS, ROWS = 110, 32
WIDTH, HEIGHT = 8.0, 17  # of a letter and of a line, in pixels
PLAY_S, HOLD_S = 10.0, 6.0  # the whole run, however long it took; then its end
COLOURS = {"31": "#f28b82", "32": "#81c995", "33": "#fdd663", "2": "#9aa0a6"}
TOKEN = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)")


def record(command):
    """Returns [(seconds since the start, text)], whole letters only."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    start, pieces, left = time.monotonic(), [], b""
    while True:
        try:
            left += os.read(terminal, 65536)
        except OSError:  # Linux says EIO when the last process has closed the terminal.
            break
        text = left.decode(errors="ignore")
        left = left[len(text.encode()):]
        pieces.append((time.monotonic() - start, text))
    os.waitpid(child, 0)
    return pieces


class Screen:
    def __init__(self, prompt):
        self.lines = [[(letter, "") for letter in f"$ {prompt}"], []]
        self.column, self.colour = 0, ""

    def write(self, text):
        for code, final, back, down, letters in TOKEN.findall(text):
            if final == "K":
                del self.lines[-1][self.column:]
            elif final == "m":
                self.colour = next((COLOURS[word] for word in code.split(";") if word in COLOURS), "")
            elif back:
                self.column = 0
            elif down:
                self.lines.append([])
                self.column = 0
            for letter in letters:
                self.lines[-1][self.column:self.column + 1] = [(letter, self.colour)]
                self.column += 1

    def rows(self):
        return [tuple(line[:COLUMNS]) for line in self.lines[-ROWS:]]


def spans(line):
    """Neighbours of one colour, as text elements' contents."""
    drawn, i = "", 0
    while i < len(line):
        j = i
        while j < len(line) and line[j][1] == line[i][1]:
            j += 1
        # Viewers do not agree about spaces that follow each other, but for those that do not break.
        text = escape("".join(letter for letter, _ in line[i:j])).replace(" ", "\u00a0")
        drawn += f'<tspan fill="{line[i][1]}">{text}</tspan>' if line[i][1] else text
        i = j
    return drawn


def shown(pieces, prompt):
    """Returns [(row, line, from, to)] in seconds of the playing; to is None for what stays."""
    screen, open_since, intervals = Screen(prompt), {}, []
    scale = PLAY_S / pieces[-1][0]
    for at, text in pieces:
        screen.write(text)
        now = round(at * scale, 2)
        rows = dict(enumerate(screen.rows()))
        for row in open_since.keys() | rows.keys():
            line, since = open_since.get(row, ((), now))
            if line == rows.get(row, ()):
                continue
            if line and since < now:
                intervals.append((row, line, since, now))
            open_since[row] = (rows.get(row, ()), now)
    return intervals + [(row, line, since, None) for row, (line, since) in open_since.items() if line]


def element(row, line, since, until):
    total = PLAY_S + HOLD_S
    times = [0, since / total] + ([until / total] if until is not None else [])
    values = ["hidden", "visible", "hidden"][:len(times)]
    return (f'<text y="{(row + 2) * HEIGHT}" visibility="{"hidden" if until is not None else "visible"}">{spans(line)}'
            f'<animate attributeName="visibility" values="{";".join(values)}" calcMode="discrete" '
            f'keyTimes="{";".join(f"{t:.4f}" for t in times)}" dur="{total}s" repeatCount="indefinite"/></text>')


def main():
    path, command = sys.argv[1], sys.argv[2:]
    prompt = os.environ.get("PROMPT", shlex.join(command))
    pieces = record(command)
    intervals = shown(pieces, prompt)
    height = (max(row for row, *_ in intervals) + 3) * HEIGHT
    width = (COLUMNS + 4) * WIDTH
    with open(path, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" width="{width:g}">\n'
                   f'<rect width="100%" height="100%" rx="8" fill="#202124"/>\n'
                   f'<g transform="translate({2 * WIDTH:g},0)" fill="#e8eaed" '
                   f'font-family="ui-monospace,DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="13.2">\n')
        file.writelines(element(*interval) + "\n" for interval in sorted(intervals, key=lambda i: i[2]))
        file.write("</g>\n</svg>\n")


main()
