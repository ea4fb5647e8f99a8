"""What quality is worth: targets to judge it by."""
