"""What catalog and archive share: a Delta log looked at closely, files that are on disk."""
