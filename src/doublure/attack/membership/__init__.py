"""Was this record among those that were learned from? Scores of a target in one table, one file an attacker else."""
