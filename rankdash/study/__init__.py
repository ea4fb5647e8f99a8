"""One comparison, computed once: a data set, its systems and the settings, and all that follows.

`study.Study` is the value; the other modules are its parts, functions of it. Every surface renders
a study and computes nothing of its own.
"""
