"""Charts: a frame in, a plotly figure out, and the same in words."""
