"""The same run on a Ray cluster. Only this folder imports Ray, and only when it is asked for."""
