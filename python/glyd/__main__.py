"""`python -m glyd` and the `glyd` script: the program that comes with the package, in this process's place."""

import os
import sys
from pathlib import Path


def program_path():
    return Path(__file__).resolve().parent / "bin" / "glyd"


def main():
    program = program_path()
    if not program.is_file():
        sys.exit(f"glyd: {program} is missing. Install the package with `pip install .` from the source tree.")
    os.execv(program, ["glyd", *sys.argv[1:]])


if __name__ == "__main__":
    main()
