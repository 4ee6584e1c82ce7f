"""The tree of plans: the task is its root, `branch` adds a plan, `prune` resumes an earlier one."""

from __future__ import annotations

from dataclasses import dataclass, field


class NoSuchPlan(Exception):
    """There is no plan with this id, or it was given up."""


@dataclass(slots=True)
class Plan:
    """A plan.

    Attributes
    ----------
    number
        Its id; the root has 0.
    intent
        What it is for.
    parent
        The plan that it is a part of; None for the root.
    url
        The page on which it was made.
    children
        Its parts, oldest first.
    resumed
        Why it was resumed, oldest first.
    is_given_up
        Whether it was given up; then its children are, too.
    """

    number: int
    intent: str
    parent: Plan | None
    url: str
    children: list[Plan] = field(default_factory=list)
    resumed: list[str] = field(default_factory=list)
    is_given_up: bool = False


class PlanTree:
    """Plans of one task. One of them is active: the one that actions belong to.

    Parameters
    ----------
    task
        The task: the root's intent.
    url
        The page on which the task begins.

    Examples
    --------
    >>> tree = PlanTree("Buy a lamp", "http://a.example/")
    >>> tree.branch("0", "Find lamps", "http://a.example/")
    1
    >>> tree.branch("1", "Use the search", "http://a.example/lamps")
    2
    >>> tree.prune("1", "The search finds nothing.")
    'http://a.example/'
    >>> print(tree)
    [0] Buy a lamp
      [1] Find lamps (active; resumed: The search finds nothing.)
    """

    def __init__(self, task: str, url: str) -> None:
        self._root = Plan(0, task, None, url)
        self._plans = [self._root]
        self._active = self._root

    @property
    def active(self) -> int:
        """Id of the active plan."""
        return self._active.number

    def branch(self, parent: str, intent: str, url: str) -> int:
        """Add a plan below another, and make it the active one.

        Parameters
        ----------
        parent
            Id of the other plan.
        intent
            What the new plan is for.
        url
            The page on which it is made.

        Returns
        -------
        int
            Id of the new plan.

        Raises
        ------
        NoSuchPlan
            If the parent does not exist or was given up.
        """
        above = self.find(parent)
        plan = Plan(len(self._plans), intent, above, url)
        above.children.append(plan)
        self._plans.append(plan)
        self._active = plan
        return plan.number

    def prune(self, number: str, reason: str) -> str:
        """Give up what was planned below and after a plan, and make it the active one.

        Parameters
        ----------
        number
            Id of the plan to resume.
        reason
            Why.

        Returns
        -------
        str
            The page on which that plan was made.

        Raises
        ------
        NoSuchPlan
            If the plan does not exist or was given up.
        """
        plan = self.find(number)
        later = plan.parent.children[plan.parent.children.index(plan) + 1 :] if plan.parent is not None else []
        for given_up in (*plan.children, *later):
            _give_up(given_up)
        plan.resumed.append(reason)
        self._active = plan
        return plan.url

    def find(self, number: str) -> Plan:
        """Return the plan with an id; brackets around the id are ignored.

        Parameters
        ----------
        number
            The id.

        Returns
        -------
        Plan
            The plan.

        Raises
        ------
        NoSuchPlan
            If it does not exist or was given up.
        """
        digits = number.strip(" []#")
        if not (digits.isascii() and digits.isdigit()) or int(digits) >= len(self._plans):
            raise NoSuchPlan(number)
        plan = self._plans[int(digits)]
        if plan.is_given_up:
            raise NoSuchPlan(number)
        return plan

    def ids(self) -> list[int]:
        """Return the ids of all plans that were not given up."""
        return [plan.number for plan in self._plans if not plan.is_given_up]

    def __str__(self) -> str:
        """Return the plans that were not given up, one per line, indented."""
        lines: list[str] = []
        stack = [(self._root, 0)]
        while stack:
            plan, depth = stack.pop()
            if plan.is_given_up:
                continue
            marks = ["active"] if plan is self._active else []
            marks += [f"resumed: {reason}" for reason in plan.resumed]
            lines.append("  " * depth + f"[{plan.number}] {plan.intent}" + (f" ({'; '.join(marks)})" if marks else ""))
            stack += [(child, depth + 1) for child in reversed(plan.children)]
        return "\n".join(lines)


def _give_up(plan: Plan) -> None:
    plan.is_given_up = True
    for child in plan.children:
        _give_up(child)
