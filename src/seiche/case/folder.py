# SPDX-License-Identifier: BSD-3-Clause
"""Output folder of a run: its lock, its record, and the protection of earlier runs.

A folder contains one run. Its record lists every file of the run before the file gets its final name. `--replace`
removes only listed files; a restart removes none. A foreign file that is put at a target during the run keeps its name.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any

from seiche.case.output import OutputTarget
from seiche.case.output_targets import (
    check_distinct_targets,
    check_targets,
    files_at,
    kind_at,
    make_folders,
)
from seiche.case.own_files import digest_of, has_mark, is_own, texts_of
from seiche.domain.sharing import on_root
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.io.files import publisher, publishing, real_path, rename, replacing
from seiche.io.lock import FolderLock, Owner

#: Names of the record of a run and of its lock.
RECORD, LOCK = ".seiche-run.json", ".seiche-run.lock"


class RunFolder:
    """Folder of a run, on the rank that writes; no method is collective."""

    def __init__(self, folder: Path, source: str, *, restart: Path | None = None, replace: bool = False) -> None:
        """Use `folder` for the case `source`, which continues the checkpoint `restart` or may `replace` a run."""
        self.path, self._source = folder, source
        self._lock = FolderLock(folder / LOCK, source)
        self._targets: list[OutputTarget] = []
        self._published: set[Path] = set()
        self._files: dict[str, str] = {}
        #: Digests of those files that have no mark of Seiche, by name: of the last version and of the one before, which
        #: remains if the run is killed before it renames the last one.
        self._digests: dict[str, list[str]] = {}
        self._foreign: set[Path] = set()
        #: Files with a mark of Seiche that the record does not list and a restart in this folder may replace.
        self._unlisted: set[Path] = set()
        #: Foreign files at targets, put there during the run: all, and those to be reported with the file of the run.
        self._conflicts: set[Path] = set()
        self._unreported: dict[Path, Path] = {}
        #: The thread that writes states also changes the record.
        self._record_lock = RLock()
        self._complete_step: int | None = None
        self._restart = restart is not None
        paths = (real_path(restart), real_path(restart.parent) / restart.name) if restart is not None else ()
        #: Whether the run continues a checkpoint in this folder.
        self._continues = any(real_path(folder) in path.parents for path in paths)
        self._may_replace = replace or self._continues

    def check_available(self) -> None:
        """Raise a CaseError if another run uses the folder or has files in it; called before the set-up."""
        if not self.path.is_dir():
            return
        try:
            owner = self._lock.owner(from_this_process=self._may_replace)
        except OSError as error:
            raise self._locking_error(error) from None
        self._check_no_owner(owner)
        if not self._may_replace:
            self._check_no_earlier_run(self._earlier_files(()))

    def claim(self, targets: Sequence[OutputTarget], inputs: Iterable[Path]) -> None:
        """Create and lock the folder for the output `targets` of a case that reads `inputs`, before any computation.

        Raises:
            CaseError: another run uses the folder, or it contains results of another run or a file of another program.
        """
        inputs = list(inputs)
        check_targets(targets, inputs)
        make_folders(self._source, self.path, targets)
        self._acquire()
        try:
            earlier = self._read_record()
            if self._continues and earlier.get("state") == "done":
                self._complete_step = earlier.get("step")
            self._targets = list(targets)
            self._clear(targets, inputs)
            self._write_record("running")
        except BaseException:
            self._lock.release()
            raise

    def is_complete_at(self, step: int) -> bool:
        """Return whether this is a restart of a run in the same folder that was complete at `step`.

        Valid after `claim`.
        """
        return self._complete_step == step

    def admit(self, new: Sequence[OutputTarget], targets: Sequence[OutputTarget], inputs: Iterable[Path]) -> None:
        """Accept `new` targets in addition to the present `targets`, after `claim`.

        Raises:
            CaseError: another output has the same target, or its file was not written by the run in this folder.
        """
        check_distinct_targets(new, targets)
        check_targets(new, inputs)
        make_folders(self._source, self.path, new)
        own_files = {self.path / name: kind for name, kind in self._files.items()}
        self._check_unlisted(new, [path for path, kind in own_files.items() if self._is_own(path, kind, self._digests)])
        self._targets += new

    def resume(self) -> None:
        """Lock the folder again after the end of the run.

        CaseError if another run has used it in the meantime, or if a file of the run has been replaced.
        """
        self._acquire()
        if self._read_record().get("run") != self._lock.nonce:
            self._lock.release()
            raise CaseError(f"{self.path}: cannot write more results of this run; the folder contains a later run")
        if replaced := self._replaced():
            self._lock.release()
            raise CaseError(f"{replaced[0]}: was replaced by another program after the run; move it to another name")
        self._write_record("running")

    def _acquire(self) -> None:
        try:
            owner = self._lock.acquire(from_this_process=self._may_replace)
        except OSError as error:
            raise self._locking_error(error) from None
        self._check_no_owner(owner)

    def _locking_error(self, error: OSError) -> CaseError:
        return CaseError(f"{self.path}: cannot lock the folder: {error.strerror}")

    def _read_record(self) -> dict[str, Any]:
        """Return the content of the record; empty if there is no record."""
        try:
            return dict(json.loads((self.path / RECORD).read_text()))
        except (OSError, ValueError, TypeError):
            return {}

    def _check_no_owner(self, owner: Owner | None) -> None:
        if owner is not None:
            raise CaseError(
                f"{self.path}: another run writes into this folder ({owner.describe()}); wait until it ends, or "
                "choose another folder with --output"
            )

    def _check_no_earlier_run(self, present: Iterable[Path]) -> None:
        files = sorted(present)
        if not files:
            return
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        text = f"{self.path}: the folder contains the results of an earlier run ({files[0].name}{more}); use"
        if self._restart:
            raise CaseError(
                f"{text} --output to continue in another folder, or --replace to continue here and replace only files"
                " whose names the run needs"
            )
        raise CaseError(f"{text} --replace to replace them, --output for another folder, or --restart to continue")

    def _clear(self, targets: Sequence[OutputTarget], inputs: Iterable[Path]) -> None:
        """Remove the files of an earlier run; those that remain are added to the record."""
        earlier = self._earlier_files(targets)
        if not self._may_replace:
            self._check_no_earlier_run({*earlier, *(path for target in targets for path in files_at(target))})
        self._check_unlisted(targets, earlier)
        inputs = {real_path(path) for path in inputs}
        digests = self._read_record().get("digests")
        for path, kind in earlier.items():
            if self._restart or real_path(path) in inputs:
                self._files[name := self._relative_name(path)] = kind
                if isinstance(digests, dict) and name in digests:
                    self._digests[name] = texts_of(digests[name])
                elif not has_mark(path, kind):  # the record of an earlier version
                    self._digests[name] = [digest_of(path)]
            else:
                path.unlink(missing_ok=True)

    def _check_unlisted(self, targets: Iterable[OutputTarget], listed: Container[Path]) -> None:
        """Raise a CaseError for files at `targets` that are not `listed`.

        A restart in this folder accepts those with a mark of Seiche, which are then stored.
        """
        for target, path, kind in [
            (t, *file) for t in targets for file in files_at(t).items() if file[0] not in listed
        ]:
            if path in self._foreign or not (self._continues and has_mark(path, kind)):
                reason = "no run wrote it" if path in self._foreign else f"{RECORD} of the folder does not list it"
                raise CaseError(
                    f"{target.key}: {path} exists, but {reason}, so it is not replaced; move it, or choose another"
                    " folder with --output"
                )
            self._unlisted.add(path)

    def _is_own(self, path: Path, kind: str, digests: Mapping[str, Any] | None) -> bool:
        return path.is_file() and is_own(path, kind, digests, self._relative_name(path))

    def _earlier_files(self, targets: Sequence[OutputTarget]) -> dict[Path, str]:
        """Return the existing files of an earlier run, in the folder or at `targets`, and their kinds.

        Files that another program wrote under a name of the run are left out.
        """
        try:
            content = self._read_record()
            files = {self.path / str(name): str(kind) for name, kind in content.get("files", {}).items()}
            digests = dict(content["digests"]) if "digests" in content else None
            for name, kind, series in content.get("places", ()):  # of an interrupted run of an earlier version
                files |= files_at(OutputTarget("", self.path / str(name), str(kind), bool(series)))
        except (ValueError, TypeError, AttributeError):
            return {}
        base, outputs = real_path(self.path), {path for target in targets for path in files_at(target)}
        files = {path: kind for path, kind in files.items() if path in outputs or base in real_path(path).parents}
        own_files = {path: kind for path, kind in files.items() if self._is_own(path, kind, digests)}
        self._foreign = {path for path in files if path.is_file()} - own_files.keys()
        return own_files

    def _relative_name(self, path: Path) -> str:
        return str(path.relative_to(self.path)) if path.is_relative_to(self.path) else str(path)

    def publish(self, part: Path, path: Path, size: int | None = None) -> Path:
        """Rename the complete file `part` of the run to `path` and return its final name.

        Later writes may change the bytes beyond the first `size`, by default none.

        The record lists the file before it is renamed. If a foreign file has been put at `path`, that file is kept, and
        the final name is another one.
        """
        kind = next((kind for target in self._targets if (kind := kind_at(target, path)) is not None), None)
        if kind is None or not self._has_folder():
            return rename(part, path)
        with self._record_lock:
            final = path
            if not self._is_free(path, kind):
                stems = (f"{path.stem}.new" + (f"-{number}" if number > 1 else "") for number in count(1))
                final = next(file for file in map(path.with_stem, stems) if self._is_free(file, kind))
                self._conflicts.add(path)
                self._unreported[path] = final
            if self._add(final, part, kind, size):
                self._write_record("running")
            self._published.add(final)
            return rename(part, final)

    def _has_folder(self) -> bool:
        """Return whether the folder is that of this run; its lock may have been deleted."""
        return self._lock.is_owned or self._read_record().get("run") == self._lock.nonce

    def _is_free(self, path: Path, kind: str) -> bool:
        """Return whether there is no file at `path`, or one that the run may replace."""
        if not os.path.lexists(path):
            return True
        listed = path in self._unlisted or self._relative_name(path) in self._files
        return listed and self._is_own(path, kind, self._digests)

    def _add(self, path: Path, content: Path, kind: str, size: int | None = None) -> bool:
        """Add the file `path` to the files of the run; return whether the record changes.

        Its digest is that of the first `size` bytes of the file `content`, by default of all.
        """
        known = self._files.get(name := self._relative_name(path)) == kind
        self._files[name] = kind
        if has_mark(content, kind):
            return not known
        self._digests[name] = [*self._digests.get(name, ())[-1:], digest_of(content, size)]
        return True

    def add(self, files: Iterable[Path]) -> None:
        """Add those `files` of this run that were written without `seiche.io.files.publish`."""
        for path in files:
            if path.is_file() and path not in self._published and path not in self._conflicts:
                kinds = [kind for target in self._targets if (kind := kind_at(target, path)) is not None]
                self._add(path, path, kinds[0] if kinds else "")

    def _replaced(self) -> list[Path]:
        """Return the targets at which a foreign file has replaced a file of the run."""
        listed = {target.path: self._files.get(self._relative_name(target.path)) for target in self._targets}
        return [
            path
            for path, kind in listed.items()
            if kind is not None and os.path.lexists(path) and not self._is_own(path, kind, self._digests)
        ]

    def check_no_conflicts(self) -> None:
        """Raise a CaseError if files got another name since the last report, because foreign files were put there."""
        if message := self._report_conflicts():
            raise CaseError(message)

    def warn_of_conflicts(self) -> None:
        """Give a warning in the cases of `check_no_conflicts`."""
        if message := self._report_conflicts():
            warnings.warn(message, stacklevel=3)

    def _report_conflicts(self) -> str:
        """Return a message on new conflicts, "" if there are none."""
        new, self._unreported = self._unreported, {}
        lost = [path for path in self._replaced() if path not in self._conflicts]
        self._conflicts.update(lost)
        if not new and not lost:
            return ""
        message = f"{_listed([*new, *lost])}: put there by another program during the run, so not replaced"
        message += f"; the run wrote {_listed(new.values())} instead" if new else ""
        return message + (f"; the results that the run wrote to {_listed(lost)} before are lost" if lost else "")

    def _write_record(self, state: str, step: int | None = None) -> None:
        content = {
            "case": self._source,
            "run": self._lock.nonce,
            "state": state,
            "step": step,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "files": self._files,
            "digests": self._digests,
        }
        with self._record_lock, publishing(rename), replacing(self.path / RECORD) as temporary:
            temporary.write_text(json.dumps(content, indent=None if state == "running" else 1))

    def release(self, state: str, step: int) -> None:
        """Write the files, the final `state` ("done", "stopped", "failed") and `step` to the record.

        Release the lock.
        """
        if self._has_folder():
            self._write_record(state, step=step)
        self._lock.release()


def _listed(paths: Iterable[Path]) -> str:
    return ", ".join(map(str, paths))


@contextmanager
def publishing_into(folder: RunFolder, world: World) -> Iterator[None]:
    """Publish all files of the block through `RunFolder.publish` (collective).

    Raises:
        CaseError: after the outermost such block, foreign files were put at targets.
    """
    is_nested = publisher() == folder.publish
    with publishing(folder.publish):
        yield
    if not is_nested:
        on_root(world, folder.check_no_conflicts)
