"""What a catalog refuses, beyond a bad query."""

from __future__ import annotations

from limen.model import LimenError


class CatalogError(LimenError):
    """A catalog that is missing, foreign, damaged or newer than this program."""


class ConflictError(CatalogError):
    """Other writers were quicker, again and again; nothing was written."""
