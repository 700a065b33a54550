"""Where the files of a table are: in a local directory, or in a store."""

import contextlib
import os
import shutil
import tempfile


class Local:
    """A directory. New files are written there at once."""

    written_in = None

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
        with open(path, encoding="utf-8") as file:
            return file.read()

    def close(self):
        """Removes what is temporary."""


class Store:
    """A prefix of a store, whose files are reached through the library of the table. New files are written to a local directory first."""

    def __init__(self, uri, files, options):
        from windrow._verbs import temp_dir

        self.directory, self._files = uri.rstrip("/"), files
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
                return file.read().decode()
        except FileNotFoundError:
            return None

    def close(self):
        shutil.rmtree(self.written_in, ignore_errors=True)
