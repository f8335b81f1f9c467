"""What the semi-supervised estimate is compared with, behind one signature."""

from ssme.baselines._labeled_only import labeled_only

__all__ = ["labeled_only"]
