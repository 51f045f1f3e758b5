"""Queries of private records: each states its sensitivity and answers for one partition."""
