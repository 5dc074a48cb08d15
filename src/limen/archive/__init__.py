"""The results of sliding-window queries, on disk, in doubly partitioned sub-indices."""

from limen.archive.archive import Archive, Receipt
from limen.archive.errors import ArchiveError, ConflictError
from limen.archive.layouts import LAYOUTS, Layout, choose
from limen.archive.reader import Snapshot, SubIndex

__all__ = [
    "LAYOUTS",
    "Archive",
    "ArchiveError",
    "ConflictError",
    "Layout",
    "Receipt",
    "Snapshot",
    "SubIndex",
    "choose",
]
