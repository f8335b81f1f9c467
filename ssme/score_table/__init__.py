"""ScoreTable: scores of several classifiers on the same rows, with ids, labels and groups; the interchange contract."""

from ssme.score_table._read import read_scores
from ssme.score_table._table import ScoreTable

__all__ = ["ScoreTable", "read_scores"]
