"""Statistics of tables: adaptive noisy counts, then a fit that reads no record.

The files in the order of the algorithm:

==============  ======================================================================================================
stage           file
==============  ======================================================================================================
plan            ``plan``: fourteen releases, each with a number of tables and a share of the budget, from public facts
                alone, and constants; ``work``: the cost; ``forecast``: what noise will hide; ``method``: all in the
                form of the method's contract
count           ``noisy_tables``: the releases in order, and the results of each. They are neighbours that are missing
                together, patterns of missing blocks (``missing_blocks``), wide columns, round values, single values,
                repeated values, codes of long lists, the target, columns in groups, columns within the target,
                scores of pairs, identities of numbers (``identities``), pairs, and the tree's pairs
read a column   ``leaves``: a column's finest cells, and groups of them; ``cut_cells``: cells that are counted value by
                value; ``posterior``: a number's distribution from all its counts; ``code_posterior``: that of a list
                of codes; ``nodes``: a column, or the patterns, as a node of pairs
publish         ``published``: the counts under public names
fit a mixture   ``fitting`` (``fitted_mixture``): the tables as shares; ``pair_errors``: a mixture's errors on pairs;
                ``mixture_fit``: the descent, which ends at the level of the noise; ``borrowing``: what a class
                takes from all rows
draw            ``fitting`` (``finished``): the tree within the mixture; ``tree_fit``: the joint table of each edge;
                ``votes``: that of codes that determine codes; ``target_fit``: the column that is drawn last
==============  ======================================================================================================

``group_rows`` encodes rows for a critic, which ``guided`` alone has. :mod:`doublure.networks.tree` draws the rows.
"""
