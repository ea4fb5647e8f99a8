"""Labelling to a verdict: which documents to label, in which order, and what the labels say so far.

    pool = pool_of({"first stage": a, "MiniLM": b}, 10)
    plan = LabelPlan.make(pool, Additive.of("dcg@10", top=3), seed=1)
    plan.order                                   # the pairs to label, in this order
    (found,) = estimate(plan, labels)            # at any time: the difference, and whether settled

A draw is a pair of query and document that is to be labelled; a guess is what its gain is taken to
be before it is.
"""
