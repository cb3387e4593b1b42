# SPDX-License-Identifier: BSD-3-Clause
"""Output folder of a run: its lock, its record, and the protection of earlier runs.

A folder contains one run. Its record lists the files of the run and, while the run continues, its output targets.
`--replace` removes only listed files; a restart removes none.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from seiche.case.output import OutputTarget
from seiche.case.output_targets import (
    check_targets,
    file_kind,
    files_at,
    make_folders,
    refuse_shared_targets,
)
from seiche.case.own_files import digest_of, is_own, may_be_new, needs_digest
from seiche.errors import CaseError
from seiche.io.files import replacing
from seiche.io.lock import FolderLock, Owner

#: Names of the record of a run and of its lock.
RECORD, LOCK = ".seiche-run.json", ".seiche-run.lock"


class RunFolder:
    """Folder of a run, on the rank that writes; no method is collective."""

    def __init__(self, folder: Path, source: str, *, restart: Path | None = None, replace: bool = False) -> None:
        """Use `folder` for the case `source`, which continues the checkpoint `restart` or may `replace` a run."""
        self.path, self._source = folder, source
        self._lock = FolderLock(folder / LOCK, source)
        self._files: dict[str, str] = {}
        #: Digests of those files that have no mark of Seiche, by name; None for very large ones.
        self._digests: dict[str, str | None] = {}
        self._foreign: set[Path] = set()
        self._unlisted: dict[Path, tuple[int, int]] = {}
        self._complete_step: int | None = None
        self._restart = restart is not None
        paths = (restart.resolve(), restart.parent.resolve() / restart.name) if restart is not None else ()
        #: Whether the run continues a checkpoint in this folder.
        self._continues = any(folder.resolve() in path.parents for path in paths)
        self._may_replace = replace or self._continues

    def refuse_occupied(self) -> None:
        """Raise a CaseError if another run uses the folder or has files in it; called before the set-up."""
        if not self.path.is_dir():
            return
        try:
            owner = self._lock.owner(from_this_process=self._may_replace)
        except OSError as error:
            raise self._locking_error(error) from None
        self._refuse_owner(owner)
        if not self._may_replace:
            self._refuse_earlier_run(self._earlier_files(()))

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
            self._clear(targets, inputs)
            self._write_record("running", targets)
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
        refuse_shared_targets(new, targets)
        check_targets(new, inputs)
        make_folders(self._source, self.path, new)
        own = {self.path / name: kind for name, kind in self._files.items()}
        self._refuse_unlisted(new, [path for path, kind in own.items() if self._is_own(path, kind, self._digests)])
        if self._lock.is_owned:
            self._write_record("running", [*targets, *new])

    def resume(self, targets: Sequence[OutputTarget]) -> None:
        """Lock the folder again after the end of the run; CaseError if another run has used it in the meantime."""
        self._acquire()
        if self._read_record().get("run") != self._lock.nonce:
            self._lock.release()
            raise CaseError(f"{self.path}: cannot write more results of this run; the folder contains a later run")
        self._write_record("running", targets)

    def _acquire(self) -> None:
        try:
            owner = self._lock.acquire(from_this_process=self._may_replace)
        except OSError as error:
            raise self._locking_error(error) from None
        self._refuse_owner(owner)

    def _locking_error(self, error: OSError) -> CaseError:
        return CaseError(f"{self.path}: cannot lock the folder: {error.strerror}")

    def _read_record(self) -> dict[str, Any]:
        """Return the content of the record; empty if there is no record."""
        try:
            return dict(json.loads((self.path / RECORD).read_text()))
        except (OSError, ValueError, TypeError):
            return {}

    def _refuse_owner(self, owner: Owner | None) -> None:
        if owner is not None:
            raise CaseError(
                f"{self.path}: another run writes into this folder ({owner.describe()}); wait until it ends, or "
                "choose another folder with --output"
            )

    def _refuse_earlier_run(self, present: Iterable[Path]) -> None:
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
            self._refuse_earlier_run({*earlier, *(path for target in targets for path in files_at(target))})
        self._refuse_unlisted(targets, earlier)
        inputs = {path.resolve() for path in inputs}
        digests = self._read_record().get("digests")
        for path, kind in earlier.items():
            if self._restart or path.resolve() in inputs:
                self._files[name := self._relative_name(path)] = kind
                if isinstance(digests, dict) and name in digests:
                    self._digests[name] = digests[name]
                elif digests is None and needs_digest(path, kind):  # the record of an earlier version
                    self._digests[name] = digest_of(path)
            else:
                path.unlink(missing_ok=True)

    def _refuse_unlisted(self, targets: Iterable[OutputTarget], listed: Container[Path]) -> None:
        """Store the files at `targets` that are not `listed`.

        CaseError for such files unless this is a restart here.
        """
        unlisted = {path: target.key for target in targets for path in files_at(target) if path not in listed}
        for path, key in unlisted.items():
            if path in self._foreign or not self._continues:
                reason = "no run wrote it" if path in self._foreign else f"{RECORD} of the folder does not list it"
                raise CaseError(
                    f"{key}: {path} exists, but {reason}, so it is not replaced; move it, or choose another folder with"
                    " --output"
                )
        self._unlisted |= {path: _version(path) for path in unlisted}

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
            for name, kind, series in content.get("places", ()):  # of an interrupted run
                files |= files_at(OutputTarget("", self.path / str(name), str(kind), bool(series)))
        except (ValueError, TypeError, AttributeError):
            return {}
        base, outputs = self.path.resolve(), {path for target in targets for path in files_at(target)}
        files = {path: kind for path, kind in files.items() if path in outputs or base in path.resolve().parents}
        own = {path: kind for path, kind in files.items() if self._is_own(path, kind, digests)}
        self._foreign = {path for path in files if path.is_file()} - own.keys()
        return own

    def _relative_name(self, path: Path) -> str:
        return str(path.relative_to(self.path)) if path.is_relative_to(self.path) else str(path)

    def add(self, files: Iterable[Path], targets: Sequence[OutputTarget]) -> None:
        """Add `files` of this run, and new files at `targets`, to the record."""
        kinds = {target.path: file_kind(target) for target in targets}
        written = {path: kinds.get(path, "") for path in files if path.is_file()}
        for target in targets:
            changed = {p: kind for p, kind in files_at(target).items() if self._unlisted.get(p) != _version(p)}
            written |= {p: kind for p, kind in changed.items() if p in written or may_be_new(p, kind)}
        self._files |= {self._relative_name(path): kind for path, kind in written.items()}
        unmarked = [path for path, kind in written.items() if needs_digest(path, kind)]
        self._digests |= {self._relative_name(path): digest_of(path) for path in unmarked}

    def _write_record(self, state: str, targets: Sequence[OutputTarget] = (), step: int | None = None) -> None:
        content = {
            "case": self._source,
            "run": self._lock.nonce,
            "state": state,
            "step": step,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "files": self._files,
            "digests": self._digests,
            "places": [(self._relative_name(target.path), file_kind(target), target.series) for target in targets],
        }
        with replacing(self.path / RECORD) as temporary:
            temporary.write_text(json.dumps(content, indent=1))

    def release(self, state: str, step: int) -> None:
        """Write the files, the final `state` ("done", "stopped", "failed") and `step` to the record.

        Release the lock.
        """
        if self._lock.is_owned:
            self._write_record(state, step=step)
        self._lock.release()


def _version(path: Path) -> tuple[int, int]:
    """Return the inode and the modification time (ns), which change when a file is replaced."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns
