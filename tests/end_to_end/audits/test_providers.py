"""Audits of the providers of a published table: each application gets the verdict of the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.audits.audited import PROVIDERS, audit_of_provider

#: Wei et al., UMass TR 2005-59, Table I; CDMA-I's HTTP data was proxied before September 2005. HTTPS was not measured
#: there: no proxy here touches it.
TABLE_I = {
    "cdma-i": {"ftp": "split-tcp", "http-data": "tcp-proxy", "http-image": "tcp-proxy", "tcp": "regular"},
    "cdma-ii": {"ftp": "split-tcp", "http-data": "split-tcp", "http-image": "tcp-proxy", "tcp": "regular"},
    "gprs-i": {"ftp": "regular", "http-data": "split-tcp", "http-image": "tcp-proxy", "tcp": "split-tcp"},
}


@pytest.mark.parametrize("provider", TABLE_I)
def test_the_providers_of_table_one_are_distinguished(tmp_path: Path, provider: str) -> None:
    both = provider == "cdma-i"
    plan = tmp_path / "plan.toml"
    written = (PROVIDERS / "plan.toml").read_text()
    plan.write_text(written if both else f'directions = ["down"]\n{written}')
    seen = audit_of_provider(tmp_path / "out", provider, plan)
    published = TABLE_I[provider] | {"https": "regular"}
    assert {name: seen.verdict(name) for name in published} == published
    # Which kind an upload's proxy is, a fast far side hides; whether there is one, nothing does.
    assert not both or {name: seen.is_split(name, "up") for name in published} == {
        name: verdict != "regular" for name, verdict in published.items()
    }
