"""Tree search: tries the most promising action of all visited states, and returns to its state to do so.

`agent.TreeSearchAgent` joins the parts, `best_first` does the rounds, `run_of_tree` records them. Pure: `tree` holds
the search, `frontier` merges and keeps its budget, `selection` chooses, `checkpoints` finds ways back,
`recorded_states` and `expected_state` say what a visited page is recognised by, `interruption` settles what a killed
process left. With the browser: `expansion` generates, validates and judges, `goto_targets` loads proposed addresses,
`backtrack` returns, `browser_storage` sets back what the site keeps, `click_spacing` keeps clicks apart,
`requests_seen` finds changes of data. With a map: `lookahead` judges states without visiting them, `map_hits` proposes
the best hits, `map_scores` judges by the map's search. Generators and rewards: `nearness` without a model;
`chat_candidates` (with `chat_contexts` and `page_window`) and `checklist` with one. `trajectory` is what they are told
of the way to a state.
"""

from waygraph.agents.search.agent import SearchOptions, TreeSearchAgent
from waygraph.agents.search.chat_candidates import ChatCandidates
from waygraph.agents.search.chat_contexts import HistoryContext, chat_contexts
from waygraph.agents.search.checklist import ChecklistReward
from waygraph.agents.search.generator import CandidateGenerator, ProposalRequest, Proposals, ProposedAction
from waygraph.agents.search.map_hits import MapHits
from waygraph.agents.search.map_scores import VALUE_PER_SCORE, MapScores
from waygraph.agents.search.nearness import NearestElements, NearnessReward, TaskNearness
from waygraph.agents.search.page_window import PageWindow
from waygraph.agents.search.reward import JudgedAction, Judgement, Reward
from waygraph.agents.search.selection import SearchLimits
from waygraph.agents.search.trajectory import Note, PastAction, Trajectory
from waygraph.agents.search.tree import SearchTree

__all__ = [
    "VALUE_PER_SCORE",
    "CandidateGenerator",
    "ChatCandidates",
    "ChecklistReward",
    "HistoryContext",
    "JudgedAction",
    "Judgement",
    "MapHits",
    "MapScores",
    "NearestElements",
    "NearnessReward",
    "Note",
    "PageWindow",
    "PastAction",
    "ProposalRequest",
    "Proposals",
    "ProposedAction",
    "Reward",
    "SearchLimits",
    "SearchOptions",
    "SearchTree",
    "TaskNearness",
    "Trajectory",
    "TreeSearchAgent",
    "chat_contexts",
]
