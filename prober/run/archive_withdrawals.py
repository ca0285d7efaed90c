"""Archives back from the server: what `probe withdraw` does, for both clients."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pepscope.errors import UsageError
from prober.errors import ControlError
from prober.plan import Plan
from prober.protocol.control_messages import is_digest
from prober.protocol.json_documents import Json
from prober.run.server_address import connect, plan_key, reach

SCHEMA = "pepscope-probe-withdraw-1"


@dataclass(frozen=True, slots=True)
class WithdrawalOutcome:
    """One archive, deleted at the server or not."""

    #: As it was named: a file, or a digest.
    named: str
    sha256: str
    #: Why the server deleted nothing, one sentence; empty where it did.
    reason: str = ""

    def to_json(self) -> dict[str, Json]:
        """An entry of the contract `pepscope-probe-withdraw-1`."""
        return {
            "archive": self.named, "sha256": self.sha256, "withdrawn": not self.reason, "reason": self.reason,
        }  # fmt: skip

    def sentence(self) -> str:
        """For people."""
        return f"{self.named} was not deleted: {self.reason}" if self.reason else f"{self.named} is deleted"


def digests_to_withdraw(named: Sequence[str]) -> dict[str, str]:
    """The digest of each archive, which is named by its file or by the digest. Raises UsageError."""
    return {each: each if is_digest(each) else _digest_of(Path(each)) for each in named}


def withdraw_all(plan: Plan, digests: dict[str, str]) -> Iterator[WithdrawalOutcome]:
    """Have the plan's server delete archives, the later ones too where it has not one of them.

    Raises PlanError, UnreachableError where the server cannot be reached at all.
    """
    plan_key(plan)
    address = reach(plan.server.host, plan.server.control_port)
    with connect(plan, address) as control:
        for named, sha256 in digests.items():
            try:
                control.ask("DELETE", f"archives/{sha256}")
            except ControlError as error:
                yield WithdrawalOutcome(named, sha256, str(error))
            else:
                yield WithdrawalOutcome(named, sha256)


def withdrawals_document(outcomes: Sequence[WithdrawalOutcome]) -> dict[str, Json]:
    """The contract `pepscope-probe-withdraw-1`."""
    return {"schema": SCHEMA, "archives": [outcome.to_json() for outcome in outcomes]}


def _digest_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"{path} must be an archive, or a SHA-256 in 64 digits: {error.strerror}") from None
