"""Where the command `pepscope` starts, as `python -m pepscope` does."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line. Until its command is loaded no garbage is looked for: imports make objects that stay."""
    gc.disable()
    from pepscope.command_line.direct import direct_call

    if (call := direct_call(sys.argv[1:])) is not None:
        from pepscope.command_line.failures import exit_status

        sys.exit(exit_status(call))
    from pepscope.cli import main as run

    run()


if __name__ == "__main__":
    main()
