"""Statistics of tables: noisy counts that look where earlier ones found something, then a fit without any record.

The files in the order of the algorithm:

==============  ======================================================================================================
stage           file
==============  ======================================================================================================
plan            ``plan``: nine releases, how many tables each has and what it may spend, by public facts alone;
                ``work``: what a fit computes and holds; ``method``: both as the method's contract asks for them
count           ``noisy_tables``: the releases one after the other, and all that is known after each. They are patterns
                of missing cells, wide columns, single values, repeated values, columns in groups, columns within the
                target, scores of pairs, pairs, and the tree's pairs
read a column   ``leaves``: its finest cells, and groups of them; ``finding``: where its rows are, which values repeat;
                ``tails``: rows where none were seen; ``nodes``: a column, or the patterns, as pairs are made of it
publish         ``published``: the counts under public names
fit a mixture   ``fitting`` (``fitted_mixture``): what is known, as shares; ``pair_errors``: how far a mixture's pairs
                are from it; ``mixture_fit``: the descent, which ends where noise begins
draw            ``fitting`` (``finished``): the tree within the mixture; ``tree_fit``: the joint table of each edge;
                ``target_fit``: the column that is drawn last
==============  ======================================================================================================

``group_rows`` shows rows to a critic, which ``guided`` alone has. :mod:`doublure.networks.tree` draws the rows.
"""
