"""The files of archives: written, replaced, mapped, and how little is read of them."""

import os
import zipfile
from io import BytesIO
from mmap import mmap
from pathlib import Path
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.errors import ArchiveError
from everyorder.runtime.script.archive import container, load, save
from everyorder.runtime.script.archive.container import reading, writing
from tests.coded import code
from tests.script.archive.samples import loaded, loop, saved

# Elements of eight megabytes, which are not counted as read if a thousandth is.
MANY = 1 << 21


def test_the_bytes_of_tensors_are_aligned() -> None:
    values = [runtime.tensor([float(each)] * (each % 5)) for each in range(40)]
    data = saved(values)
    with zipfile.ZipFile(BytesIO(data)) as file:
        members = [each for each in file.infolist() if "storages/" in each.filename]
    assert len(members) == 40
    for each in members:
        name, extra = (
            int.from_bytes(data[each.header_offset + at :][:2], "little")
            for at in (26, 28)
        )
        assert (each.header_offset + 30 + name + extra) % 64 == 0
        assert each.compress_type == zipfile.ZIP_STORED
    assert [each.tolist() for each in loaded(data)] == [v.tolist() for v in values]


def test_equal_contents_have_equal_bytes() -> None:
    assert saved(loop()) == saved(loop())
    with zipfile.ZipFile(BytesIO(saved(loop()))) as file:
        assert file.testzip() is None
        assert {each.date_time for each in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_an_open_file_is_read_from_where_it_is() -> None:
    data = saved([1, 2])
    file = BytesIO(b"before" + data)
    file.seek(6)
    assert load(file) == [1, 2]
    out = BytesIO(b"before")
    out.seek(6)
    save([1, 2], out)
    assert out.getvalue() == b"before" + data


class Stopped(BaseException):
    """As an interrupt is."""


def test_an_interrupted_save_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.zip"
    save([1], path)
    before = path.read_bytes()
    tensor = runtime.tensor([1.0])

    def stop(*_: Any) -> None:
        raise Stopped

    for step in ("raw", "text"):
        with monkeypatch.context() as patch:
            patch.setattr(container.ArchiveWriter, step, stop)
            with pytest.raises(Stopped):
                save([tensor], path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop)
        with pytest.raises(Stopped):
            save([tensor], path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.zip"]
    save([2], path)
    assert load(path) == [2]


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    save([1], path)
    with pytest.raises(TypeError):
        save([object()], path)
    assert load(path) == [1]
    assert os.listdir(tmp_path) == ["a.zip"]


def test_a_file_that_is_not_there_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "a.zip")


class Counting(mmap):
    """A map that counts the bytes that are copied out of it."""

    count = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        type(self).count += len(found) if isinstance(found, bytes) else 1
        return found


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> type[Counting]:
    """The bytes that are read of files."""
    monkeypatch.setattr(Counting, "count", 0)
    monkeypatch.setattr(container, "mmap", Counting)
    return Counting


def test_tensors_are_not_read(tmp_path: Path, counted: type[Counting]) -> None:
    path = tmp_path / "a.zip"
    ours = runtime.ops.core.full([MANY], 1.5)
    save([ours], path)
    (back,) = load(path)
    assert counted.count < 100_000 < os.path.getsize(path) // 50
    array = back.storage().array
    while getattr(array, "base", None) is not None:
        array = array.base
    owner = array.obj if isinstance(array, memoryview) else array
    assert isinstance(owner, Counting)
    assert back[-1].item() == 1.5


def test_reading_tensors_would_be_seen(
    tmp_path: Path, counted: type[Counting], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.zip"
    save([runtime.ops.core.full([MANY], 1.5)], path)
    plain = container.ArchiveReader.raw

    def eager(self: container.ArchiveReader, name: str) -> tuple[int, int]:
        start, size = plain(self, name)
        self.data[start : start + size]
        return start, size

    monkeypatch.setattr(container.ArchiveReader, "raw", eager)
    load(path)
    assert counted.count > 4 * MANY


def test_what_is_written_to_a_tensor_stays_out_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    save([runtime.tensor([1.0, 2.0])], path)
    before = path.read_bytes()
    (one,), (other,) = load(path), load(path)
    one.fill_(7.0)
    assert (one.tolist(), other.tolist()) == ([7.0, 7.0], [1.0, 2.0])
    assert path.read_bytes() == before


def test_a_loaded_archive_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    save([runtime.tensor([1.0, 2.0])], path)
    (one,) = load(path)
    save([one, one], path)
    save([runtime.tensor([5.0])], path)
    assert one.tolist() == [1.0, 2.0]


def test_members_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with writing(path) as writer:
        writer.text("a/b", "ab" * 1000)
        writer.raw("c", memoryview(b"123"))
    reader = reading(path)
    assert (reader.text("a/b"), reader.names("a")) == ("ab" * 1000, ["b"])
    start, size = reader.raw("c")
    assert (reader.data[start : start + size], start % 64) == (b"123", 0)


def test_what_no_reader_takes_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.zip"
    with pytest.raises(ArchiveError, check=code("NotSaveable")) as raised:
        save([1], path, _extra_files={"../../a": "b"})
    assert raised.value.place == "'extra/../../a'"
    monkeypatch.setattr(container, "TEXT_BYTES", 1000)
    with pytest.raises(ArchiveError, check=code("NotSaveable")) as raised:
        save([1], path, _extra_files={"a": "b" * 1001})
    assert (raised.value.place, raised.value.reason) == (
        "extra/a",
        "it has more than 1000 bytes",
    )
    monkeypatch.setattr(container, "TEXTS_BYTES", 900)
    with pytest.raises(
        ArchiveError,
        check=code("NotSaveable"),
        match="with it, all texts have more than 900",
    ):
        save([1], path, _extra_files={"a": "b" * 899})
    assert os.listdir(tmp_path) == []


def test_what_packs_too_well_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    save(["a" * 1_000_000], path)
    assert load(path) == ["a" * 1_000_000]
