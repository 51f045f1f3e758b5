"""Was this record among those that were learned from? One file an attacker."""
