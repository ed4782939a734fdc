#!/usr/bin/env python3
"""Starts a command, sends it a signal as soon as a path exists, and returns as the command did.

    signal_when.py SIGNAL PATH COMMAND...

Exit status: the command's; 128 + the signal's number if the signal ended it; 99 if the command ended before the path appeared.
"""

import os
import signal
import subprocess
import sys
import time


def main(words):
    number = getattr(signal, "SIG" + words[0])
    path = words[1]
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # not deaf, as children of a background job are
    process = subprocess.Popen(words[2:])
    while not os.path.exists(path):
        if process.poll() is not None:
            print(f"signal-when: the command ended with {process.returncode} before {path} appeared", file=sys.stderr)
            return 99
        time.sleep(0.0005)
    process.send_signal(number)
    status = process.wait()
    return 128 - status if status < 0 else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
