"""What an archive refuses."""

from __future__ import annotations

from limen.model import LimenError


class ArchiveError(LimenError):
    """An archive that is missing, foreign or damaged; results or an update that it cannot take."""


class ConflictError(ArchiveError):
    """Another writer was quicker; nothing was written."""
