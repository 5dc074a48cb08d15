"""Tests of `limen.model`."""
