#!/usr/bin/env python3
"""Runs a command whose standard error is a terminal of 100 columns, and prints what it wrote there: a line for each time it was drawn.

    on_terminal.py COMMAND...

Exit status: the command's.
"""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios


def main(words):
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    process = subprocess.Popen(words, stderr=there, env=os.environ | {"TERM": "xterm"})
    os.close(there)
    written = b""
    while True:
        try:
            part = os.read(here, 65536)
        except OSError:  # Linux reports the other end's close so
            break
        if not part:
            break
        written += part
    sys.stdout.write(written.decode(errors="replace").replace("\x1b[K", "").replace("\r\n", "\n").replace("\r", "\n"))
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
