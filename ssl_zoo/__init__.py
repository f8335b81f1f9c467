"""Deep semi-supervised algorithms, contamination of the unlabeled pool under controlled variables, and diagnostics."""
