"""Where the command `pepscope` starts, as `python -m pepscope` does."""

from __future__ import annotations

import gc
import os
import sys

#: Values that the frame of `main` could hold, of eight bytes each.
_FRAME_SLOTS = 1 << 15


def main() -> None:
    """Run the command line. Until its command is loaded no garbage is looked for: imports make objects that stay."""
    gc.disable()
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_closed_streams()
    try:
        from pepscope.processes.signals import end_in_order

        end_in_order()
        from pepscope.command_line.direct import run_directly

        if (status := run_directly(sys.argv[1:])) is not None:
            sys.exit(status)
        from pepscope.cli import main as run

        run()
    except KeyboardInterrupt:  # while modules are loaded; what runs then has an end of its own
        from pepscope.command_line.failures import INTERRUPTED, complain

        sys.stderr.write("\n")
        sys.exit(complain("interrupted", INTERRUPTED))


def _open_closed_streams() -> None:
    """Open what the caller closed of the standard streams (`>&-`), as the null device.

    Else a capture would be opened under their numbers. Standard input and output are opened for the other
    way, so that the first use of them fails with `Bad file descriptor`: a command whose results go nowhere has failed.
    Messages on standard error may get lost.
    """
    for number, way in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, way)  # the system gives the lowest number that is free
    # They stay open until the end, as those that Python opens.
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


# Python keeps the frames of calls in blocks of 16 KiB, and gives a block back when its last frame ends: a function that
# is called over and over where one block ends takes two system calls and a page fault each time. A frame of this size
# has a block that all deeper ones fit into; of it only what is used takes memory.
main.__code__ = main.__code__.replace(co_stacksize=_FRAME_SLOTS)


if __name__ == "__main__":
    main()
