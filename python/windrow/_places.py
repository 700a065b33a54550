"""Where the files of a table are: in a local directory, or in a store."""

import contextlib
import os
import shutil
import tempfile
import typing
import uuid

from windrow import _windrow
from windrow._errors import SpaceError


class Local:
    """A directory. New files are written there at once."""

    written_in = None
    # What the library needs to read files.
    reading: typing.ClassVar[dict] = {}

    def __init__(self, directory):
        # The library joins names to it, and takes absolute ones as they are.
        self.directory = os.path.abspath(directory)

    def publish(self, names):
        """Makes new files readable for others."""

    def remove(self, names):
        """Removes new files of which no one knows."""
        for name in names:
            os.remove(os.path.join(self.directory, name))

    def there(self, name):
        """The local path of a new file."""
        return os.path.join(self.directory, name)

    def read(self, name):
        """The content of a file; `None` if there is none."""
        path = os.path.join(self.directory, name)
        if not os.path.exists(path):
            return None
        with open(path, "rb") as file:
            return file.read()

    def names(self, folder):
        """The names of the files in a folder."""
        return os.listdir(os.path.join(self.directory, folder))

    def write(self, name, content):
        """Writes a new file, durably."""
        path = os.path.join(self.directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            try:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            except OSError as error:
                os.remove(path)
                raise SpaceError(f"{path}: {error.strerror}") from error
        self._sync(os.path.dirname(path))

    def create(self, name, content):
        """Writes a file whole, unless there is another one of this name. Returns whether it is there with this content."""
        path = os.path.join(self.directory, name)
        folder, named = os.path.dirname(path), None
        try:
            # Without a name, it is gone with this process.
            file = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
        except OSError:
            # Some file systems have none such.
            named = f"{folder}/.{uuid.uuid4()}.tmp"
            file = os.open(named, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        try:
            with open(file, "wb") as opened:
                opened.write(content)
                opened.flush()
                os.fsync(file)
                # Unlike a new name for a file, a second name for it fails if there is one.
                # Links are followed only where a directory is given, which absolute paths do not use.
                os.link(named or f"/proc/self/fd/{file}", path, src_dir_fd=file)
        except FileExistsError:
            return False
        except OSError as error:
            raise SpaceError(f"{path}: {error.strerror}") from error
        finally:
            if named:
                os.remove(named)
        self._sync(folder)
        return True

    @staticmethod
    def _sync(directory):
        opened = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)

    def close(self):
        """Removes what is temporary."""


class Store:
    """A prefix of a store, whose files are reached through the library of the table. New files are written to a local directory first."""

    def __init__(self, uri, files, options):
        from windrow._verbs import temp_dir

        self.directory, self._files = uri.rstrip("/"), files
        self.reading = {"storage_options": options["storage_options"]} if options.get("storage_options") else {}
        self.written_in = tempfile.mkdtemp(prefix="windrow-", dir=temp_dir(options))

    def publish(self, names):
        for name in names:
            with open(self.there(name), "rb") as source, self._files.open_output_stream(name) as target:
                shutil.copyfileobj(source, target, 1 << 20)

    def remove(self, names):
        for name in names:
            # It may not be there yet.
            with contextlib.suppress(OSError):
                self._files.delete_file(name)

    def there(self, name):
        return os.path.join(self.written_in, name)

    def read(self, name):
        try:
            with self._files.open_input_file(name) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def names(self, folder):
        return self._files.names(folder)

    def write(self, name, content):
        with self._files.open_output_stream(name) as target:
            target.write(content)

    def create(self, name, content):
        options = self.reading.get("storage_options", {})
        if _windrow.put_new(f"{self.directory}/{name}", content, [(key, text(value)) for key, value in options.items()]):
            return True
        # The store may have taken it, and its answer may have been lost.
        return self.read(name) == content

    def close(self):
        shutil.rmtree(self.written_in, ignore_errors=True)


def text(value):
    """The value of an option, or of a partition of Delta, as text."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if value is None else str(value)
