"""Captures read at once: the same as one after the other, errors in the order of the files, and no thread left."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from detector.detection import detect
from pepscope.captures import at_once
from pepscope.captures.at_once import open_captures
from pepscope.captures.capture import open_capture
from pepscope.errors import CaptureError

CORPUS = Path(__file__).parents[2] / "corpus"
ENDS = [str(CORPUS / f"reg_dl_par20.{end}.pcap.gz") for end in ("srv", "mob")]

Progress = Callable[[int, int], object]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert not set(threading.enumerate()) - before  # one of another test may end meanwhile


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Replaces reading by ten steps of progress, and lists who made which; a file that holds `bad` cannot be read."""
    made: list[tuple[str, int]] = []

    def read(path: str, *, progress: Progress, **_: object) -> str:
        content = Path(path).read_text()
        for step in range(10):
            made.append((path, step))
            progress(step + 1, 10)
        if content == "bad":
            raise CaptureError(f"{path} is bad")
        return path

    monkeypatch.setattr(at_once, "open_capture", read)
    return made


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., list[str]]:
    def written(*contents: str) -> list[str]:
        paths = [tmp_path / f"{number}.pcap" for number in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_text(content)
        return [str(path) for path in paths]

    return written


@pytest.mark.parametrize("together", [False, True])
def test_the_captures_are_those_that_are_read_alone(together: bool) -> None:
    for path, read in zip(ENDS, open_captures(ENDS, at_once=together), strict=True):
        alone = open_capture(path)
        assert read.path == path
        assert list(read.connections) == list(alone.connections)
        assert read.counts == alone.counts
        assert all((read.packets(n).time_ns == alone.packets(n).time_ns).all() for n in range(len(alone.connections)))


def test_a_filter_holds_for_both() -> None:
    wanted = f"tcp port {open_capture(ENDS[0]).connections[3].client_port}"
    alone = [open_capture(path, filter=wanted).counts for path in ENDS]
    assert [capture.counts for capture in open_captures(ENDS, filter=wanted)] == alone
    assert alone[0]["filtered_out"] > 0


@pytest.mark.parametrize(("first", "second", "named"), [("bad", "bad", 0), ("bad", "fine", 0), ("fine", "bad", 1)])
def test_the_error_of_the_first_that_cannot_be_read_is_raised(
    first: str, second: str, named: int, files: Callable[..., list[str]], steps: list[tuple[str, int]]
) -> None:
    paths = files(first, second)
    with pytest.raises(CaptureError, match=f"{named}.pcap is bad"):
        open_captures(paths)
    assert steps


def test_one_that_does_not_exist_is_reported_as_before(files: Callable[..., list[str]]) -> None:
    paths = [*files("fine"), "/nowhere/b.pcap"]
    with pytest.raises(CaptureError, match=r"0\.pcap"):
        open_captures(paths)
    with pytest.raises(CaptureError, match="/nowhere/b"):
        open_captures(paths[::-1])


@pytest.mark.usefixtures("steps")
def test_progress_is_that_of_both_and_reported_here(files: Callable[..., list[str]]) -> None:
    paths = files("fine and ten", "fine and ten")
    reports: list[tuple[int, int]] = []
    threads = set()

    def note(done: int, total: int) -> None:
        reports.append((done, total))
        threads.add(threading.current_thread())

    assert [str(capture) for capture in open_captures(paths, progress=note)] == paths
    assert threads == {threading.current_thread()}
    done = [read for read, _ in reports]
    assert done == sorted(done)
    assert 20 <= reports[-1][1] <= 22  # sizes until a reader has said how large its file is
    assert all(read <= total for read, total in reports)


@pytest.mark.parametrize("contents", [["first", "second"], ["alone"]])
def test_something_else_is_done_while_files_are_read(
    contents: list[str], files: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_done = threading.Event()

    def read(path: str, **_: object) -> str:
        assert is_done.wait(60)
        return path

    monkeypatch.setattr(at_once, "open_capture", read)
    paths = files(*contents)
    assert [*map(str, open_captures(paths, meanwhile=is_done.set))] == paths


@pytest.mark.parametrize("together", [False, True])
def test_what_fails_meanwhile_is_raised(together: bool) -> None:
    with pytest.raises(ZeroDivisionError):
        open_captures(ENDS, at_once=together, meanwhile=lambda: 1 / 0)


def test_interrupting_one_ends_both(files: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    paths = files("first", "second")
    ended = threading.Event()

    def read(path: str, *, progress: Progress, **_: object) -> None:
        if path == paths[0]:
            progress(1, 2)
        try:
            while True:
                progress(1, 2)
        finally:
            ended.set()

    def interrupt(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(at_once, "open_capture", read)
    with pytest.raises(KeyboardInterrupt):
        open_captures(paths, progress=interrupt)
    assert ended.is_set()


def test_detection_with_several_jobs_reads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names: set[str] = set()

    def read(path: str, **options: object) -> object:
        names.add(threading.current_thread().name)
        return open_capture(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(at_once, "open_capture", read)
    results = [detect(*ENDS, jobs=jobs).to_dict() for jobs in (1, 2)]
    assert results[0] == results[1]
    assert names == {threading.current_thread().name, f"reading {ENDS[1]}"}
    alone = [detect(ENDS[0], jobs=jobs).to_dict() for jobs in (1, 2)]
    assert alone[0] == alone[1]
