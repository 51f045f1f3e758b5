"""What may be asked of private records: each query states its sensitivity, and answers for one partition of them."""
