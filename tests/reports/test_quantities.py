from __future__ import annotations

import pytest

from reports.quantities import describe_number, format_bytes, format_percent, format_seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (-1.4e-17, "0 s"),
        (-0.5123, "-512 ms"),
        (12.3456, "12.3 s"),
        (3.2e-5, "32 us"),
        (7200.0, "120 min"),
    ],
)
def test_a_duration_has_few_digits_and_a_fitting_unit(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (999_900, "1 MB"), (2_500_000, "2.5 MB")])
def test_a_size_has_few_digits_and_a_fitting_unit(count: int, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0 %"), (0.003, "<1 %"), (0.5, "50 %"), (0.9999, ">99 %"), (1.0, "100 %")]
)
def test_percentages_are_100_only_where_exact(share: float, text: str) -> None:
    assert format_percent(share) == text


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("slack_s", -0.25, ("slack", "-250 ms")),
        ("hold_ms", 4.0, ("hold", "4 ms")),
        ("sender_rate_bit_s", 2.5e6, ("sender rate", "2.5 Mbit/s")),
        ("clock_drift_ppm", 12.5, ("clock drift", "12.5 ppm")),
        ("window_bytes", 65535, ("window", "65.5 kB")),
        ("violating_fraction", 0.51, ("violating fraction", "51 %")),
        ("delivered_share_when_done", 0.99, ("delivered share when done", "99 %")),
        ("segments", 1998, ("segments", "1,998")),
        ("timestamps", True, ("timestamps", "yes")),
        ("offset_s", None, ("offset s", "not known")),
    ],
)
def test_numbers_get_their_unit_from_their_name(name: str, value: object, expected: tuple[str, str]) -> None:
    assert describe_number(name, value) == expected  # type: ignore[arg-type]
