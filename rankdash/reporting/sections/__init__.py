"""The sections of a report, a room each: what is known of a subject, as HTML without markup from
the data."""
