"""The oldest packages that an installation may have: what `make test-lowest` installs."""

from __future__ import annotations

from pathlib import Path

import pytest

from distribution.lowest_versions import lowest_versions

SETTINGS = """
[options]
install_requires =
    click >= 8.2
[options.extras_require]
pages =
    plotly >= 6.0
simulate =
    # Tables.
    pandas >= 2.2
    plotly >= 6.1.1
all =
    pepscope[pages,simulate]
test =
    pytest >= 9.0
"""


def test_the_highest_bound_of_each_package_of_users_is_kept() -> None:
    assert lowest_versions(SETTINGS) == ["click==8.2", "pandas==2.2", "plotly==6.1.1"]


def test_a_requirement_without_a_lower_bound_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'pandas' is no lower bound"):
        lowest_versions(SETTINGS.replace("pandas >= 2.2", "pandas"))


def test_every_package_of_users_has_a_lower_bound() -> None:
    assert "numpy==1.26" in lowest_versions((Path(__file__).parents[2] / "setup.cfg").read_text(encoding="utf-8"))
