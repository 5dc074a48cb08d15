"""The versioned query set: a Delta table of change records; which version a batch is bound to."""

from limen.catalog.catalog import Catalog
from limen.catalog.errors import CatalogError, ConflictError
from limen.catalog.receipts import Changes, Entry, Event, Receipt

__all__ = ["Catalog", "CatalogError", "Changes", "ConflictError", "Entry", "Event", "Receipt"]
