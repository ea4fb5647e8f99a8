"""Asking a judge about the pairs of a pool: in order, resumable, every failure counted as one."""
