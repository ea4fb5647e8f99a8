"""A judge: a language model that grades how relevant a document is to a query, with its reason.

What it gives are grades beside people's labels, never labels.
"""
