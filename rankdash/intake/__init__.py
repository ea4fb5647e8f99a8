"""Uploaded files on their way into a workspace: read, checked, and stored once."""
