"""`python -m prober.lean`, and what the client's file runs: measuring with the standard library alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from prober.lean.msgspec_subset import stand_in

NAME = "pepscope-client"
_USAGE = f"""usage: {NAME} check ...        is this network splitting TCP, from this host alone?
       {NAME} probe plan ...   write a commented plan of a full audit
       {NAME} probe run ...    run a plan against `pepscope probe serve`, and write an archive
       {NAME} probe upload ... upload archives to that server
       {NAME} probe withdraw ... have that server delete them
Each has --help. The archive is judged where pepscope is installed: pepscope audit ARCHIVE
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status as the commands of pepscope: 2 with a sentence where nothing was measured."""
    stand_in()  # before anything that declares documents is imported
    from pepscope.errors import PepscopeError

    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _command(words)
    except PepscopeError as error:
        return _complain(str(error), error.exit_status)
    except OSError as error:
        return _complain(f"{error.filename or 'input or output'}: {error.strerror or error}", 2)
    except ModuleNotFoundError as error:
        if error.name not in sys.stdlib_module_names:
            raise
        return _complain(f"this needs Python's module {error.name}, which {sys.platform} does not have", 2)
    except KeyboardInterrupt:
        return _complain("interrupted", 130)


def _command(words: Sequence[str]) -> int:
    if words and words[0] in ("-h", "--help"):
        sys.stdout.write(_USAGE)
        return 0
    if not words or words[0] == "check" or words[0].startswith("-"):
        from prober.check.__main__ import main as check

        return check(words)
    if list(words[:2]) == ["probe", "plan"]:
        from prober.lean.probe import write_plan

        return write_plan(words[2:])
    if list(words[:2]) == ["probe", "run"]:
        from prober.lean.probe import run

        return run(words[2:])
    if list(words[:2]) == ["probe", "upload"]:
        from prober.lean.probe import upload

        return upload(words[2:])
    if list(words[:2]) == ["probe", "withdraw"]:
        from prober.lean.probe import withdraw

        return withdraw(words[2:])
    sys.stderr.write(_USAGE)
    known = "check, probe plan, probe run, probe upload or probe withdraw"
    return _complain(f"a command must be {known}, got {' '.join(words[:2])}", 2)


def _complain(sentence: str, status: int) -> int:
    sys.stderr.write(f"{NAME}: {sentence}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
