"""Trees for tests, without a browser."""

from waygraph.agents.actions import ClickAction, StopAction
from waygraph.agents.search.frontier import Proposal, add, merge
from waygraph.agents.search.search_actions import VisitAction
from waygraph.agents.search.tree import CandidateStatus, RecordedState, SearchTree
from waygraph.index.graph import Action


def state(name, url="http://a.example/", fragment="", **features):
    return RecordedState(snapshot=name, url=url, address=url + fragment, features=features)


def link(name, **more):
    return Action(kind="click", role="link", name=name, **more)


def click(name, *, context="one", **more):
    gesture = link(name, target=more.pop("target", ""), nth=more.pop("nth", 0))
    return Proposal(ClickAction(element="1"), gesture, context, **more)


def stop(answer="", *, context="one"):
    return Proposal(StopAction(answer=answer), None, context)


def visit(node, *, context="one"):
    return Proposal(VisitAction(state=node), None, context, outcome=node)


def put(tree, node, proposal, score, **changes):
    """Add one proposal to a node, and return its candidate."""
    added = add(tree, node, [(each, score) for each in merge([proposal])])[0]
    for name, value in changes.items():
        setattr(added, name, value)
    return added


def grown(*, budget=4, depth=1):
    """Return a tree with a chain of `depth` nodes, each with a URL of its own."""
    tree = SearchTree(task="a task", budget=budget)
    tree.add_node(state("s0"), parent=None, candidate=None)
    for number in range(1, depth):
        step(tree, number - 1, f"to {number}", state(f"s{number}", f"http://a.example/{number}"))
    return tree


def step(tree, node, name, to, **changes):
    """Perform a click in a node; return the node that it leads to."""
    done = put(tree, node, click(name), 0.5, status=CandidateStatus.DONE, **changes)
    return tree.add_node(to, parent=node, candidate=done.id)
