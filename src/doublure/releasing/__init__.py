"""What is given away: bundle, card, dictionary; and how it is verified."""
