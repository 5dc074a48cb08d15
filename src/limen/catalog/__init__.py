"""The versioned query set: a Delta table of change records; which version a batch is bound to."""

from limen.catalog.catalog import Catalog, Changes, Entry, Event, Receipt
from limen.catalog.errors import CatalogError, ConflictError

__all__ = ["Catalog", "CatalogError", "Changes", "ConflictError", "Entry", "Event", "Receipt"]
