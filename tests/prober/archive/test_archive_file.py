"""Archives: written archives are read again, and malicious ones are refused in one sentence."""

from __future__ import annotations

import contextlib
import json
import stat
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prober.archive.archive_file import Bounds, Manifest, is_archive, open_archive, read_archive, write_archive
from prober.archive.observation_json import read_observation, write_observation
from prober.client.transfer import Flow
from prober.errors import ArchiveError
from prober.measurement.task import Measurement, Observation, Status
from prober.protocol.application import Application
from tests.prober.runs_made_by_hand import EMPTY_CAPTURE, archive, observation, plan, rewritten, task, whole_run

OBSERVED = "observations/transfers--ftp--down--size_bytes=1000--001.json"
CAPTURE = "captures/transfers--ftp--down--size_bytes=1000--001.mobile.pcap"


def refusal(path: Path, directory: Path, bounds: Bounds | None = None) -> str:
    directory.mkdir(exist_ok=True)
    with pytest.raises(ArchiveError) as caught:
        read_archive(path, directory, bounds)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = whole_run(tmp_path / "run.zip")
    assert is_archive(path)
    with open_archive(path) as run:
        assert run.manifest.plan == plan()
        assert run.manifest.complete
        assert [item.status for item in run.observations] == [Status.DONE, Status.FAILED, Status.IMPOSSIBLE]
        assert run.observations[0] == observation(captured=True)
        assert run.captures[CAPTURE].read_bytes() == EMPTY_CAPTURE
        assert run.metadata == {"schema": 1, "notes": {}}
    assert not run.captures[CAPTURE].exists()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=8), json_values.filter(lambda value: value not in (float("inf"), -float("inf")))),
    st.lists(st.tuples(st.integers(0, 65_535), st.integers(0, 65_535), st.text(max_size=10)), max_size=4),
    st.floats(0, 1e9),
    st.sampled_from([None, *Application]),
)
def test_any_measurement_survives(
    values: dict[str, Any], ports: list[tuple[int, int, str]], duration_s: float, application: Application | None
) -> None:
    made = observation(
        replace(task(), application=application),
        duration_s=duration_s,
        measurement=Measurement(_without_infinities(values), tuple(Flow(*item) for item in ports)),
    )
    assert read_observation(write_observation(made), "it") == made


def _without_infinities(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_infinities(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_infinities(item) for item in value]
    return 0.0 if value in (float("inf"), -float("inf")) else value


def test_equal_runs_make_equal_archives(tmp_path: Path) -> None:
    first, second = whole_run(tmp_path / "a.zip"), whole_run(tmp_path / "b.zip")
    assert first.read_bytes() == second.read_bytes()


def test_the_key_is_in_no_member(tmp_path: Path) -> None:
    secret = "pepscope1.mmmmmmmmmmmmmmmmmmmmmmmm." + "0" * 64
    manifest = Manifest("run", plan(server={"host": "h", "key": secret}), 1, 2, complete=True)
    write_archive(tmp_path / "run.zip", manifest, [], {"schema": 1}, {})
    with zipfile.ZipFile(tmp_path / "run.zip") as members:
        assert "manifest.json" in members.namelist()
        assert all(b"mmmmmm" not in members.read(name) for name in members.namelist())


def test_an_archive_is_whole_or_not_there(tmp_path: Path) -> None:
    path = whole_run(tmp_path / "run.zip")
    before = path.read_bytes()
    with pytest.raises(FileNotFoundError):
        write_archive(
            path, Manifest("run", plan(), 1, 2, complete=True), [], {"schema": 1}, {CAPTURE: tmp_path / "gone.pcap"}
        )
    assert path.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


# ---- what is refused

CHANGES: dict[str, tuple[Callable[[dict[str, bytes]], Any], str]] = {
    "no manifest": (lambda members: members.pop("manifest.json"), "must have a manifest.json"),
    "no facts": (lambda members: members.pop("facts.json"), "must have a facts.json"),
    "no JSON": (lambda members: members.update({OBSERVED: b"{"}), "must be JSON"),
    "no number": (lambda members: members.update({"facts.json": b'{"schema": NaN}'}), "NaN must be a number"),
    "deep facts": (lambda members: members.update({"facts.json": b"[" * 100_000}), "must nest at most"),
    "a list": (lambda members: members.update({OBSERVED: b"[]"}), "must be a JSON object"),
    "another task's name": (
        lambda members: members.update({OBSERVED.replace("001", "009"): members.pop(OBSERVED)}),
        "about another task",
    ),
    "no capture": (lambda members: members.update({CAPTURE: b"GIF89a" + bytes(40)}), "must be a capture"),
    "half a capture": (lambda members: members.update({CAPTURE: EMPTY_CAPTURE[:23]}), "must be a capture"),
    "a missing capture": (lambda members: members.pop(CAPTURE), "is missing"),
    "a way out": (
        lambda members: members.update({"captures/../../x.pcap": EMPTY_CAPTURE}),
        "must have the name of a part of a run",
    ),
    "a way out by name": (
        lambda members: members.update({"captures/..\\x.pcap": EMPTY_CAPTURE}),
        "must have the name of a part of a run",
    ),
    "an absolute name": (
        lambda members: members.update({"/etc/x.pcap": EMPTY_CAPTURE}),
        "must have the name of a part of a run",
    ),
    "a directory": (lambda members: members.update({"captures/": b""}), "must have the name of a part of a run"),
    "something else": (
        lambda members: members.update({"readme.txt": b"hello"}),
        "must have the name of a part of a run",
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_is_wrong_is_refused(case: str, tmp_path: Path) -> None:
    change, sentence = CHANGES[case]
    assert sentence in refusal(rewritten(whole_run(tmp_path / "run.zip"), change), tmp_path / "out")
    assert not (tmp_path / "x.pcap").exists()


MANIFESTS: dict[str, tuple[dict[str, Any], str]] = {
    "another schema": ({"schema": "pepscope-run-9"}, "its schema must be"),
    "a path for a name": ({"run_id": "../../etc/passwd"}, "must be the name of a run"),
    "another plan": ({"plan": {"limits": {"tries": -1}}}, "the plan cannot be used"),
    "a huge number in the plan": ({"plan": {"limits": {"task_s": 10**400}}}, "the plan cannot be used"),
    "a size that is none": ({"plan": {"limits": {"total_bytes": "x"}}}, "the plan cannot be used"),
    "a time before all times": ({"started_unix_ns": -1}, "started_unix_ns"),
    "half complete": ({"complete": 1}, "complete"),
    "no digests": ({"digests": None}, "digests"),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_manifests_that_lie_are_refused(case: str, tmp_path: Path) -> None:
    fields, sentence = MANIFESTS[case]

    def change(members: dict[str, bytes]) -> None:
        members["manifest.json"] = json.dumps({**json.loads(members["manifest.json"]), **fields}).encode()

    path = rewritten(whole_run(tmp_path / "run.zip"), change, fresh_digests=False)
    assert sentence in refusal(path, tmp_path / "out")


def test_a_member_that_was_changed_is_refused(tmp_path: Path) -> None:
    def change(members: dict[str, bytes]) -> None:
        members[OBSERVED] = members[OBSERVED].replace(b"1.25", b"9.25")

    path = rewritten(whole_run(tmp_path / "run.zip"), change, fresh_digests=False)
    assert "digest" in refusal(path, tmp_path / "out")


def test_members_beside_the_manifest_are_refused(tmp_path: Path) -> None:
    extra = OBSERVED.replace("001", "777")
    path = rewritten(
        whole_run(tmp_path / "run.zip"), lambda members: members.update({extra: b"{}"}), fresh_digests=False
    )
    assert "is there but not in the manifest" in refusal(path, tmp_path / "out")


def with_member(path: Path, info: zipfile.ZipInfo, data: bytes = b"x") -> Path:
    with zipfile.ZipFile(path, "a") as members:
        members.writestr(info, data)
    return path


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
def test_links_and_other_kinds_of_files_are_refused(kind: int, tmp_path: Path) -> None:
    info = zipfile.ZipInfo("captures/x.pcap")
    info.external_attr = (kind | 0o777) << 16
    path = with_member(whole_run(tmp_path / "run.zip"), info, b"/etc/passwd")
    assert "must be a plain file" in refusal(path, tmp_path / "out")


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    path = whole_run(tmp_path / "run.zip")
    with pytest.warns(UserWarning, match="Duplicate name"):
        with_member(path, zipfile.ZipInfo("facts.json"), b"{}")
    assert "different names" in refusal(path, tmp_path / "out")


def test_other_ways_of_packing_are_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("captures/x.pcap")
    info.compress_type = zipfile.ZIP_LZMA
    assert "must be deflated or stored" in refusal(with_member(whole_run(tmp_path / "run.zip"), info), tmp_path / "out")


def test_an_existing_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    path = whole_run(tmp_path / "run.zip")
    victim = tmp_path / "victim"
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / CAPTURE.removeprefix("captures/")).symlink_to(victim)
    with pytest.raises(FileExistsError):
        read_archive(path, tmp_path / "out")
    assert not victim.exists()


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        (Bounds(ratio_from_bytes=1 << 20), "times its size"),
        (Bounds(total_bytes=1 << 20), "must unpack to at most 1048576 bytes"),
        (Bounds(members=3), "must have at most 3 members"),
    ],
)
def test_bombs_are_refused_while_they_unpack(bounds: Bounds, sentence: str, tmp_path: Path) -> None:
    def change(members: dict[str, bytes]) -> None:
        members[CAPTURE] = EMPTY_CAPTURE + bytes(20 << 20)

    path = rewritten(whole_run(tmp_path / "run.zip"), change)
    assert path.stat().st_size < 100_000
    assert sentence in refusal(path, tmp_path / "out", bounds)
    assert all(item.stat().st_size < 5 << 20 for item in (tmp_path / "out").iterdir())


def test_a_document_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = rewritten(
        whole_run(tmp_path / "run.zip"), lambda members: members.update({"facts.json": b'{"a":"' + b"x" * 5000 + b'"}'})
    )
    assert "must have at most 4000 bytes" in refusal(path, tmp_path / "out", Bounds(document_bytes=4000))


def test_members_before_the_start_of_the_file_are_refused(tmp_path: Path) -> None:
    path = whole_run(tmp_path / "run.zip")
    data = bytearray(path.read_bytes())
    place = data.rindex(b"PK\x05\x06") + 16
    data[place : place + 4] = (int.from_bytes(data[place : place + 4], "little") + 60).to_bytes(4, "little")
    path.write_bytes(data)
    assert "must be an archive of a run" in refusal(path, tmp_path / "out")


def test_other_files_are_no_archives(tmp_path: Path) -> None:
    other = tmp_path / "other"
    for data in (b"", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), EMPTY_CAPTURE, bytes(100_000)):
        other.write_bytes(data)
        assert refusal(other, tmp_path / "out").startswith(str(other))


ONE = observation(captured=True)
LEAVES = [
    ("status",), ("reason",), ("started_unix_ns",), ("duration_s",), ("mobile_capture",), ("task",), ("measurement",),
    ("task", "experiment"), ("task", "repeat"), ("task", "application"), ("task", "direction"), ("task", "wants"),
    ("task", "parameters"), ("task", "bytes_up"), ("task", "captured"), ("measurement", "flows"),
    ("measurement", "values"), ("measurement", "ack_delay_s"),
]  # fmt: skip


@given(st.sampled_from(LEAVES), json_values | st.just(float("inf")), st.booleans())
def test_observations_of_wrong_types_are_read_or_refused(place: tuple[str, ...], value: Any, without: bool) -> None:
    document = json.loads(write_observation(ONE))
    inner = document
    for name in place[:-1]:
        inner = inner[name]
    if without:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    read = read_or_refused(json.dumps(document).encode())
    assert read is None or read_or_refused(write_observation(read)) == read


def read_or_refused(data: bytes) -> Observation | None:
    try:
        return read_observation(data, "it")
    except ArchiveError:
        return None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(data=st.data())
def test_a_damaged_archive_is_refused_or_the_same(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("damaged")
    path = archive(directory / "run.zip", ONE)
    whole = path.read_bytes()
    with open_archive(path) as run:
        expected = run.observations, run.manifest
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(damaged[: data.draw(st.integers(len(damaged) // 2, len(damaged)))])
    with contextlib.suppress(ArchiveError), open_archive(path) as run:
        assert (run.observations, run.manifest) == expected
