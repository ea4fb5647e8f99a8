"""Grades by a judge, such as a language model: how far they agree with people's labels, and what
the two together say of a comparison."""
