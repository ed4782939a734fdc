#!/usr/bin/env python3
"""Starts a command, sends it a signal as soon as a path exists (or, with "open:" before it, as soon as the command has it open), and returns as
the command did.

    signal_when.py SIGNAL PATH COMMAND...

Exit status: the command's; 128 + the signal's number if the signal ended it; 99 if the command ended before the path appeared.
"""

import os
import signal
import subprocess
import sys
import time


def reached(condition, process):
    if not condition.startswith("open:"):
        return os.path.exists(condition)
    wanted = os.path.realpath(condition.removeprefix("open:"))
    directory = f"/proc/{process.pid}/fd"
    try:
        return any(os.readlink(f"{directory}/{name}") == wanted for name in os.listdir(directory))
    except OSError:  # closed while we looked
        return False


def main(words):
    number = getattr(signal, "SIG" + words[0])
    condition = words[1]
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # not deaf, as children of a background job are
    process = subprocess.Popen(words[2:])
    while not reached(condition, process):
        if process.poll() is not None:
            print(f"signal-when: the command ended with {process.returncode} before {condition}", file=sys.stderr)
            return 99
        time.sleep(0.0005)
    process.send_signal(number)
    status = process.wait()
    return 128 - status if status < 0 else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
