"""The passes that FixMatch and its relatives share: labeled, weak and strong views through the student."""

from __future__ import annotations

from ssl_zoo.algorithms.base import Algorithm, StepContext, View, forward, peek


class WeakStrong(Algorithm):
    """Base of methods whose weak view makes the target of the strong view.

    ``passes="joint"`` sends all three views through one pass, as the papers do. ``"split"`` takes the weak views
    through a pass of their own without gradient (about a third less work), normalised by their own batch.
    """

    needs = ("l_weak", "u_weak", "u_strong")
    choices = {"passes": ("joint", "split")}

    lam: float = 1.0
    passes: str = "joint"

    def three_views(self, ctx: StepContext) -> tuple[View, View, View]:
        """Labeled, weak and strong view after the student."""
        x_l, u_w, u_s = self.views(ctx)
        if self.passes == "joint":
            labeled, weak, strong = forward(ctx.model, x_l, u_w, u_s)
        else:
            (weak,) = peek(ctx.model, u_w)
            labeled, strong = forward(ctx.model, x_l, u_s)
        return labeled, weak, strong
