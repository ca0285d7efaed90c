"""Answers on standard output, a line each: what the subset of msgspec makes of a document, or its sentence of refusal.

Each line of standard input is `[MODULE:TYPE, DOCUMENT]` as JSON. Real msgspec is shut out.
"""

from __future__ import annotations

import importlib
import json
import sys

sys.modules["msgspec"] = None  # type: ignore[assignment]  # `import msgspec` fails


def main() -> None:
    from prober.lean.msgspec_subset import modules

    sys.modules.update(modules())
    import msgspec

    from tests.prober.lean.reading import answer

    assert not hasattr(msgspec, "__version__"), "this must be the subset"
    for line in sys.stdin:
        name, document = json.loads(line)
        module, _, kind = name.partition(":")
        answered = answer(getattr(importlib.import_module(module), kind), document)
        sys.stdout.write(json.dumps(answered) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
