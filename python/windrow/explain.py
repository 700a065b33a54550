"""What a job would do, without doing it: the calls of `windrow`, with the same arguments.

>>> import pyarrow as pa
>>> import windrow as wr
>>> plan = wr.explain.sort(pa.table({"id": [2, 1]}), by="id", memory="128MiB")
>>> plan.to_dict()["order"]
'id'
>>> plan.floor < plan.limit
True
"""

from windrow import _verbs

__all__ = ["compact", "dedupe", "diff", "head", "merge", "partition", "sort"]

sort = _verbs.explaining(_verbs.sort)
compact = _verbs.explaining(_verbs.compact)
dedupe = _verbs.explaining(_verbs.dedupe)
diff = _verbs.explaining(_verbs.diff)
head = _verbs.explaining(_verbs.head)
merge = _verbs.explaining(_verbs.merge)
partition = _verbs.explaining(_verbs.partition)
