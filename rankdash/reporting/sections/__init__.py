"""The sections of a report, a room each: what is known of a study, as HTML without markup from
the data."""
