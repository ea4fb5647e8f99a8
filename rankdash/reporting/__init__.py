"""What leaves rankdash as a file."""
