"""A file is either the old one or the whole new one, whatever happens in between."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ssme._atomic import atomic_path, check_folder, check_writable


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text("old")
    return path


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_new_file_takes_the_place_of_the_old_one(target: Path) -> None:
    with atomic_path(target) as temp:
        temp.write_text("new")
        assert target.read_text() == "old"
        assert temp.parent == target.parent and temp.suffix == ".csv"
    assert target.read_text() == "new"
    assert os.listdir(target.parent) == ["table.csv"]


def test_both_suffixes_are_kept(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "a.csv.gz") as temp:
        assert temp.name.endswith(".csv.gz")
        temp.write_text("x")


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_no_rest(target: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), atomic_path(target) as temp:
        temp.write_text("half")
        raise error
    assert target.read_text() == "old"
    assert os.listdir(target.parent) == ["table.csv"]


def test_a_full_disk_leaves_the_old_file_and_says_which(target: Path) -> None:
    with (
        pytest.raises(OSError, match=r"cannot write .*table.csv \(No space left") as caught,
        atomic_path(target) as temp,
    ):
        temp.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.errno == errno.ENOSPC
    assert target.read_text() == "old"
    assert os.listdir(target.parent) == ["table.csv"]


def test_other_os_errors_pass_unchanged(target: Path) -> None:
    with pytest.raises(FileNotFoundError, match="elsewhere"), atomic_path(target):
        open(target.parent / "elsewhere")
    assert target.read_text() == "old"


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on file size")
def test_a_real_limit_on_file_size_leaves_the_old_table(tmp_path: Path) -> None:
    """As on a full disk the system refuses the write in the middle."""
    code = """
        import resource, sys, numpy as np
        from ssme.score_table import ScoreTable
        table = ScoreTable.from_arrays(np.random.default_rng(0).random((5000, 3)))
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
        try:
            table.write(sys.argv[1])
        except OSError as error:
            sys.exit(str(error))
    """
    for suffix in ("npz", "csv", "csv.gz", "parquet"):
        path = tmp_path / f"t.{suffix}"
        path.write_text("old")
        done = run(code, path)
        assert done.returncode == 1 and "cannot write" in done.stderr, done.stderr
        assert path.read_text() == "old"
    assert len(os.listdir(tmp_path)) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_kill_in_the_middle_leaves_the_old_file(target: Path) -> None:
    code = """
        import os, signal, sys
        from ssme._atomic import atomic_path, check_folder, check_writable
        with atomic_path(sys.argv[1]) as temp:
            with open(temp, "w") as file:
                file.write("half")
                file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
    """
    assert run(code, target).returncode == -signal.SIGKILL
    assert target.read_text() == "old"


def test_an_empty_block_is_an_error(target: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing was written"), atomic_path(target):
        pass
    assert target.read_text() == "old"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_permissions_of_the_old_file_stay(target: Path) -> None:
    target.chmod(0o640)
    with atomic_path(target) as temp:
        temp.write_text("new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_stays_a_link(tmp_path: Path, target: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(target)
    with atomic_path(link) as temp:
        temp.write_text("new")
    assert link.is_symlink() and target.read_text() == "new"


def test_targets_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="the folder .* does not exist"), atomic_path(tmp_path / "no" / "a.csv"):
        pass
    with pytest.raises(IsADirectoryError, match="is a folder"), atomic_path(tmp_path):
        pass


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="needs a device")
def test_a_device_is_not_replaced() -> None:
    with pytest.raises(ValueError, match="device or a pipe"), atomic_path("/dev/null"):
        pass


def test_the_temporary_file_is_never_named(target: Path) -> None:
    with (
        pytest.raises(OSError, match=rf"cannot write {target} \(Permission denied\)") as caught,
        atomic_path(target) as temp,
    ):
        raise PermissionError(errno.EACCES, "Permission denied", str(temp))
    assert temp.name not in str(caught.value) and "older file there is left" in str(caught.value)
    new = target.with_name("new.csv")
    with pytest.raises(OSError, match="No space left") as caught, atomic_path(new) as temp:
        raise OSError(errno.ENOSPC, "No space left on device", str(temp))
    assert "older" not in str(caught.value)


def test_checks_leave_nothing_behind(target: Path) -> None:
    check_writable(target)
    check_writable(target.with_name("new.csv"))
    check_folder(target.parent / "a" / "b")
    check_folder(target.parent)
    assert os.listdir(target.parent) == ["table.csv"] and target.read_text() == "old"


@pytest.mark.skipif(not os.path.isdir("/sys/kernel"), reason="needs a file system that takes no files from anybody")
def test_checks_see_what_the_file_system_allows() -> None:
    for check, path in ((check_writable, "/sys/table.csv"), (check_folder, "/sys/study/one")):
        with pytest.raises(PermissionError, match=f"cannot write {path} .*choose another place"):
            check(path)


def test_a_folder_below_a_file(target: Path) -> None:
    with pytest.raises(NotADirectoryError, match="table.csv is not a folder"):
        check_folder(target / "study")


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_to_nowhere_names_the_folder_that_it_leads_to(tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "gone" / "t.csv")
    with pytest.raises(FileNotFoundError, match="gone does not exist"):
        check_writable(link)
