"""One sentence for every document that does not fit its type: the place, what must be there, and what was given."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepscope.errors import UsageError
from pepscope.settings import assign, parse_change, read_settings, read_toml, toml_value
from pepscope.strict_reading import Amount, Table, WholeNumber, between, read_as


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Limits(Table, frozen=True):
    tries: Annotated[int, between(1, 100)] = 2
    idle_s: Annotated[float, between(0.05, 3600.0)] = 10.0
    buffer_bytes: Annotated[int, between(1024, 1 << 30)] = 4096
    sizes_bytes: Annotated[tuple[WholeNumber, ...], msgspec.Meta(min_length=1)] = (1,)


class Hop(msgspec.Struct, frozen=True):
    """One that may have fields beyond those that are known."""

    name: Annotated[str, msgspec.Meta(max_length=5)]
    delay_s: Amount | None = None


class Document(Table, frozen=True):
    colour: Colour
    schema: Literal[1] = 1
    is_loud: bool = False
    limits: Limits = Limits()
    path: tuple[Hop, ...] = ()
    hops: list[Hop] = []  # noqa: RUF012 (msgspec copies it)
    ends: tuple[int, int] = (0, 1)
    labels: dict[str, int | str] = {}  # noqa: RUF012 (msgspec copies it)
    colours: tuple[Colour, ...] = ()


RED = {"colour": "red"}


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (3, "the document must be a table, got 3"),
        ({}, "colour is missing; it must be one of red, blue"),
        ({"colour": "green"}, "colour must be one of red, blue, got 'green'"),
        ({"colour": None}, "colour must be one of red, blue, got None"),
        (RED | {"color": 1}, "color is not a field; fields are colour, colours, ends"),
        (RED | {"schema": 2}, "schema must be 1, got 2"),
        (RED | {"is_loud": 1}, "is_loud must be true or false, got 1"),
        (RED | {"limits": 5}, "limits must be a table, got 5"),
        (RED | {"limits": {"trys": 1}}, "limits.trys is not a field; fields of limits are buffer_bytes, idle_s"),
        (RED | {"limits": {"tries": 0}}, "limits.tries must be a whole number between 1 and 100, got 0"),
        (RED | {"limits": {"tries": True}}, "limits.tries must be a whole number between 1 and 100, got True"),
        (RED | {"limits": {"tries": "2"}}, "limits.tries must be a whole number between 1 and 100, got '2'"),
        (RED | {"limits": {"tries": 1.5}}, "limits.tries must be a whole number between 1 and 100, got 1.5"),
        (RED | {"limits": {"tries": 10**30}}, "got an integer of more than 64 bits"),
        (RED | {"limits": {"idle_s": math.nan}}, "limits.idle_s must be a number between 0.05 and 3600, got nan"),
        (RED | {"limits": {"idle_s": 10**400}}, "limits.idle_s must be a number between 0.05 and 3600, got an integer"),
        (RED | {"limits": {"buffer_bytes": "big"}}, "or a size such as 512KiB, got 'big'"),
        (RED | {"limits": {"buffer_bytes": "1k" + "k" * 99}}, "got '1kkk"),
        (
            RED | {"limits": {"sizes_bytes": []}},
            "limits.sizes_bytes must be a list of at least one entry, got a list of 0",
        ),
        (RED | {"limits": {"sizes_bytes": [1, -1]}}, "limits.sizes_bytes[1] must be a whole number of at least 0"),
        (RED | {"path": {"name": "a"}}, "path must be a list, got a table of 1 entry"),
        (RED | {"path": [{"name": "a"}, {}]}, "path[1].name is missing; it must be text of at most 5 characters"),
        (RED | {"path": [{"name": "longer"}]}, "path[0].name must be text of at most 5 characters, got 'longer'"),
        (RED | {"path": [{"name": "a", "delay_s": -1}]}, "path[0].delay_s must be a number of at least 0, got -1"),
        (
            RED | {"path": [{"name": "a", "delay_s": math.inf}]},
            "path[0].delay_s must be a number of at least 0, got inf",
        ),
        (RED | {"hops": [7]}, "hops[0] must be an object, got 7"),
        (RED | {"ends": [1]}, "ends must be a list of 2 entries, got a list of 1 entry"),
        (RED | {"ends": [1, "x"]}, "ends[1] must be a whole number, got 'x'"),
        (RED | {"labels": {"a": 1, "b": [2]}}, "labels.b must be a whole number or text, got a list of 1 entry"),
        (RED | {"colours": ["red", "x"]}, "colours[1] must be one of red, blue, got 'x'"),
        (RED | {"a\nb" * 30: 1}, "is not a field"),
    ],
)
def test_a_document_that_does_not_fit_gets_one_sentence(document: Any, sentence: str) -> None:
    with pytest.raises(UsageError) as refusal:
        read_settings(Document, document, UsageError)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_the_place_of_a_document_in_a_greater_one_is_named() -> None:
    with pytest.raises(UsageError, match=r"^experiments\.gain\.tries must be"):
        read_as(Limits, {"tries": 0}, UsageError, place="experiments.gain")


def test_what_fits_is_read() -> None:
    given = {
        "colour": "blue",
        "limits": {"tries": 3, "idle_s": 1},
        "path": [{"name": "a", "unknown": 1}],
        "ends": [4, 5],
        "labels": {"a": "b"},
    }
    read = read_settings(Document, given, UsageError)
    assert read == Document(
        colour=Colour.BLUE,
        limits=Limits(tries=3, idle_s=1.0),
        path=(Hop(name="a"),),
        ends=(4, 5),
        labels={"a": "b"},
    )
    assert isinstance(read.limits.idle_s, float)


def test_sizes_have_units_and_single_entries_no_brackets() -> None:
    read = read_settings(Limits, {"buffer_bytes": "64KiB", "sizes_bytes": "1MB", "tries": 5e1, "idle_s": 2}, UsageError)
    assert read == Limits(buffer_bytes=65_536, sizes_bytes=(1_000_000,), tries=50, idle_s=2.0)
    assert isinstance(read.tries, int)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(Document.__struct_fields__), inner),
    max_leaves=12,
)


@given(JSON)
def test_no_document_breaks_the_reader(document: Any) -> None:
    """Whatever it is, it is read, or refused with one sentence."""
    refused = ""
    try:
        read_settings(Document, document, UsageError)
    except UsageError as refusal:
        refused = str(refusal)
    assert "\n" not in refused
    assert not refused or " must be " in refused or " is not a field" in refused


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("limits.tries=3", "limits.tries", 3),
        ("limits.tries = 3", "limits.tries", 3),
        ("listen=127.0.0.1:80", "listen", "127.0.0.1:80"),
        ("allow=['a', 'b']", "allow", ["a", "b"]),
        ("truth=", "truth", ""),
    ],
)
def test_a_change_is_a_field_and_a_value(text: str, name: str, value: Any) -> None:
    assert parse_change(text, toml_value) == (name, value)


def test_a_change_without_value_is_refused() -> None:
    with pytest.raises(UsageError, match="--set must be FIELD=VALUE"):
        parse_change("limits.tries", toml_value)


def test_values_go_where_their_names_lead() -> None:
    document: dict[str, Any] = {"path": [{"down": {}}]}
    assign(document, "path[0].down.delay_s", 0.1, UsageError)
    assign(document, "limits.tries", 3, UsageError)
    assert document == {"path": [{"down": {"delay_s": 0.1}}], "limits": {"tries": 3}}


@pytest.mark.parametrize("name", ["path[1].down", "path.down", "limits.tries.more", "", "[0]", "a b"])
def test_a_name_without_an_address_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        assign({"path": [{}], "limits": {"tries": 1}}, name, 1, UsageError)


@pytest.mark.parametrize("content", [b"a = ", b"\xff = 1"])
def test_what_is_not_toml_is_refused(tmp_path: Any, content: bytes) -> None:
    (tmp_path / "file.toml").write_bytes(content)
    with pytest.raises(UsageError, match="must be TOML"):
        read_toml(tmp_path / "file.toml", UsageError)
