"""Snapshots of Iceberg with delete files: a producer of snapshots of pyiceberg 0.12, extended. Imported where it is needed."""

from itertools import groupby

from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestWriterV2
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _OverwriteFiles


class Deletes(ManifestWriterV2):
    """A manifest of delete files."""

    def content(self):
        return ManifestContent.DELETES

    @property
    def _meta(self):
        return {**super()._meta, "content": "deletes"}


class Producer(_OverwriteFiles):
    """A producer of a snapshot that also adds delete files."""

    def __init__(self, transaction, io, properties, deletes):
        super().__init__(operation=Operation.OVERWRITE, transaction=transaction, io=io, snapshot_properties=properties)
        self._deletes = deletes

    def _process_manifests(self, manifests):
        for spec_id, files in groupby(sorted(self._deletes, key=lambda file: file.spec_id), key=lambda file: file.spec_id):
            output = self.new_manifest_output()
            with Deletes(self.spec(spec_id), self.schema(), output, self._snapshot_id, self._compression) as writer:
                for file in files:
                    writer.add(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=self._snapshot_id, data_file=file))
            manifests = [*manifests, writer.to_manifest_file()]
        return manifests

    def _summary(self, properties):
        data = self._added_data_files
        self._added_data_files = [*data, *self._deletes]
        try:
            return super()._summary(properties)
        finally:
            self._added_data_files = data
