"""A file is there whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pepscope.whole_file import check_output, output_path, whole_file, whole_files, write_output, write_whole


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_takes_its_name_when_it_is_whole(durable: bool, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_whole(path, "earlier", durable=durable)
    with whole_file(path, durable=durable) as stream:
        stream.write(b"later")
        stream.flush()
        assert path.read_text() == "earlier"
    assert path.read_text() == "later"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("durable", [False, True])
def test_an_error_leaves_what_was_there(durable: bool, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_whole(path, b"earlier", durable=durable)
    with pytest.raises(TypeError), whole_file(path, durable=durable) as stream:
        stream.writelines([b"half", "no bytes"])  # type: ignore[list-item]
    assert path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("is_whole", [True, False])
def test_files_that_belong_together_take_their_places_together(is_whole: bool, tmp_path: Path) -> None:
    names = ("a.pcap", "b.pcap")
    for name in names:
        (tmp_path / name).write_text("earlier")

    def write() -> None:
        with whole_files(tmp_path) as directory, output_path(tmp_path / "c.pcap") as alone:
            for place in (alone, *(directory / name for name in names)):
                place.write_text("later")
            assert {(tmp_path / name).read_text() for name in names} == {"earlier"}
            assert not (tmp_path / "c.pcap").exists()
            if not is_whole:
                raise KeyboardInterrupt

    if is_whole:
        write()
    else:
        with pytest.raises(KeyboardInterrupt):
            write()
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == (dict.fromkeys((*names, "c.pcap"), "later") if is_whole else dict.fromkeys(names, "earlier"))


@pytest.mark.parametrize(("earlier", "later"), [(0o600, 0o600), (0o664, 0o664), (0o755, 0o644)])
def test_a_file_has_the_permissions_of_the_one_whose_place_it_takes(earlier: int, later: int, tmp_path: Path) -> None:
    names = ("report.json", "a.pcap", "alone.pcap")
    for name in names:
        (tmp_path / name).touch()
        (tmp_path / name).chmod(earlier)
    (tmp_path / "link").symlink_to("report.json")
    write_output(tmp_path / "link", "later")
    with whole_files(tmp_path) as directory, output_path(tmp_path / "alone.pcap") as alone:
        for place in (directory / "a.pcap", alone):
            place.write_text("later")
    assert (tmp_path / "link").is_symlink()
    assert {(tmp_path / name).read_text() for name in names} == {"later"}
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names} == {later}


def test_what_is_secret_stays_so(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch(0o644)
    write_whole(key, "secret", mode=0o600)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_a_pipe_without_a_name_is_written_to() -> None:
    source, sink = os.pipe()
    check_output(f"/dev/fd/{sink}")
    write_output(f"/dev/fd/{sink}", "report")
    with output_path(Path(f"/dev/fd/{sink}")) as place:
        place.write_text(", capture")
    os.close(sink)
    with os.fdopen(source) as stream:
        assert stream.read() == "report, capture"


def test_what_makes_a_device_itself_writes_to_it() -> None:
    with output_path(Path("/dev/null")) as place:
        assert place == Path("/dev/null")


def test_what_a_killed_process_left_goes_with_the_next_try(tmp_path: Path) -> None:
    (tmp_path / ".key.partial").write_text("half")
    (tmp_path / ".key.partial").chmod(0o666)
    write_whole(tmp_path / "key", "whole", mode=0o600, durable=True)
    assert [path.name for path in tmp_path.iterdir()] == ["key"]
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_durable_files_and_their_directory_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    write_whole(tmp_path / "result", "text")
    assert not synced
    write_whole(tmp_path / "result", "text", durable=True)
    assert len(synced) == 2


def test_an_output_is_checked_and_left_alone(tmp_path: Path) -> None:
    there = tmp_path / "there.html"
    there.write_text("mine")
    check_output(there)
    check_output(tmp_path / "new.html")
    check_output(os.devnull)
    assert there.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [there]
    for unwritable in (tmp_path, tmp_path / "none" / "page.html", Path("/proc/page.html")):
        with pytest.raises(OSError, match=r"directory|permitted|denied"):
            check_output(unwritable)


@pytest.mark.parametrize("durable", [False, True])
def test_errors_name_the_file_that_was_asked_for(durable: bool, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    for directory in ("missing", "file"):
        path = tmp_path / directory / "result.json"
        with pytest.raises(OSError, match="directory") as refused:
            write_whole(path, "text", durable=durable)
        assert refused.value.filename == str(path)
        for given in (path, os.path.relpath(path)):
            with pytest.raises(OSError, match="directory") as refused:
                check_output(given)
            assert refused.value.filename == str(given)
