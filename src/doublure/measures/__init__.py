"""What is measured of synthetic records, beside real ones. Knows no attack and no page."""
