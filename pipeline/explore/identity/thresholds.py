"""Thresholds of state identity, page groups, evidence and refreshes, in one table.

Every entry gives the meaning of the constant, its unit, and the benchmark or test that set the value. "Set by hand"
means that no benchmark chose it; the test file named there exercises the rule. Limits of caches and of memory use are
listed as well when they decide which states a run finds.

Thresholds that belong to other layers and are not repeated here:

- `waygraph.index.graph.recognition`: `FEATURE_SHARE` (0.75), `ELEMENT_SHARE` (0.5) and `OWN_SHARE` (0.4), measured by
  `bench/likeness.py`; `MIN_OWN` (2), `OWN_SHARE_OTHER_LAYOUT` (0.6), `ELEMENT_SHARE_OTHER_LAYOUT` (0.25) and
  `UNKNOWN_SHARE_OTHER_LAYOUT` (0.4), measured by `bench/foreign_profiles.py`; `SHARED_LAYOUT_SHARE` (0.5), set by hand.
- `waygraph.index.graph.state_matching`: which state of a new map succeeds which state of an old one, set by hand,
  exercised by `make soak-refresh`.
- `waygraph.index.catalog.distinctive`: `SHOWN_ELSEWHERE_SHARE` (0.2), which features are a state's own.
- `waygraph.pipeline.explore.session.login`: when a page counts as a login page.
- Budgets that users set: `explore.trap_budget`, `explore.alike_budget`, `refresh.share`, `refresh.budget_seconds`.
"""

from __future__ import annotations

# ---- recognition of known states (`recognition.py`) ----------------------------------------------------------------

#: Jaccard similarity of structures from which on two loads are the same page when their URLs differ in volatile
#: parameters only. Where the titles differ, the texts must be this similar as well: pages of one template share their
#: structure. Set by hand; no benchmark (tests/unit/pipeline/explore/identity/test_recognition.py).
SAME_PAGE_SIMILARITY = 0.5

#: Jaccard similarity of structures from which on a page that was not just loaded shows a recorded state.
#: Set by hand; no benchmark (tests/unit/pipeline/explore/identity/test_recognition.py).
STAND_IN_SIMILARITY = 0.9

#: Share of the differing elements that may be unknown as noise when an in-page snapshot differs from a known state in
#: elements only. Bars and stars that grow and shrink are rarely seen in all their sizes.
#: Set by hand; no benchmark (tests/unit/pipeline/explore/identity/test_recognition.py).
UNKNOWN_NOISE_SHARE = 0.5

#: Element hashes, and separately features, that are stored as noise per URL. A page with more noise changes as a
#: whole. Set by hand; no benchmark.
MAX_NOISE_PER_URL = 4_000

# ---- volatile URL parameters (`parameters.py`) ---------------------------------------------------------------------

#: Distinct values of one parameter in otherwise equal links of one page, from which on the links are a list and the
#: parameter names pages. Set by hand; no benchmark (tests/unit/pipeline/explore/identity/test_parameters.py).
MIN_LISTED_VALUES = 3

#: Pairs of pages with the same content whose URLs differ in one random value, after which the parameter (or path
#: segment) counts as volatile. Set by hand; no benchmark (tests/unit/pipeline/explore/identity/test_parameters.py).
SAME_CONTENT_VOTES = 2

# ---- skeleton mode (`skeleton.py`) ---------------------------------------------------------------------------------

#: Visited pages of a kind, the representative included, that must agree before links to further pages of the kind are
#: skipped. Set by hand; no benchmark (tests/unit/pipeline/explore/identity/test_skeleton.py).
MIN_AGREEING_PAGES = 3

#: Representatives that are compared per URL template. Set by hand; no benchmark.
MAX_REPRESENTATIVES = 8

#: Share of the smaller page's elements that the larger page must have for two pages to be of one kind.
#: Set by hand; no benchmark (tests/unit/pipeline/explore/identity/test_skeleton.py).
CONTAINED_SHARE = 0.8

#: Share of all elements of both pages that both must have, besides `CONTAINED_SHARE`.
#: Set by hand; no benchmark (tests/unit/pipeline/explore/identity/test_skeleton.py).
COMMON_SHARE = 0.4

# ---- gain of a visit (`gain.py`) -----------------------------------------------------------------------------------

#: Words that a visit must add to the vocabulary of its group to count as a gain.
#: Set by hand on the fixture traps (tests/unit/pipeline/explore/identity/test_traps.py).
MIN_NEW_WORDS = 2

#: The same for groups of pages that are named by dates: the names of days and months are new words, but few.
#: Set by hand on the fixture traps (tests/unit/pipeline/explore/identity/test_traps.py).
MIN_NEW_WORDS_OF_DATES = 3

#: Share of the words of a visit that must be new, unless `MANY_NEW_WORDS` of them are.
#: Set by hand on the fixture traps (tests/unit/pipeline/explore/identity/test_traps.py).
NEW_WORD_SHARE = 0.05

#: Number of new words that makes a gain whatever their share.
#: Set by hand on the fixture traps (tests/unit/pipeline/explore/identity/test_traps.py).
MANY_NEW_WORDS = 8

#: Structures that are distinguished per group. A group with more structures changes at random.
#: Set by hand; no benchmark.
MAX_CLUSTERS = 6

#: Words stored per group. Set by hand; no benchmark.
MAX_VOCABULARY = 20_000

#: Hashes in a structure sketch: the standard error of the estimated Jaccard similarity is about 0.06 (bottom-k sketch,
#: Broder 1997).
SKETCH_SIZE = 64

#: Estimated Jaccard similarity from which on two structures are of one kind.
#: Set by hand on the fixture traps (tests/unit/pipeline/explore/identity/test_traps.py).
SKETCH_SIMILARITY = 0.5

#: Share of the smaller structure that the larger one must contain for both to be of one kind at a lower similarity.
#: Set by hand on the fixture traps (tests/unit/pipeline/explore/identity/test_traps.py).
SKETCH_CONTAINED_SHARE = 0.8

#: Budget that a gain gives back to its group; a visit without gain costs 1. Set by hand on the fixture traps
#: (tests/unit/pipeline/explore/identity/test_traps.py).
BUDGET_PER_GAIN = 2

# ---- traps (`traps.py`) --------------------------------------------------------------------------------------------

#: Longest URL that is followed, in characters. RFC 9110, section 4.1, recommends support for at least 8,000; pages
#: that people are meant to find have less than a quarter of that. Set by hand
#: (tests/unit/pipeline/explore/identity/test_traps.py).
MAX_URL_LENGTH = 2_000

#: Visits that may count links into one folder as a gain before one of these links shows a new state.
#: Set by hand on the fixture traps (tests/unit/pipeline/explore/identity/test_traps.py).
MAX_UNVERIFIED_LINKS = 2

#: Words that links offer for a parameter of a query, up to which it is a choice (tabs, views) and not a name.
#: Chosen on DokuWiki, whose tools have two to four tabs, and on the fixture traps.
MAX_CHOICES = 4

#: Visits of an exhausted group for choices that no visit of it made. Set by hand on the fixture traps
#: (tests/unit/pipeline/explore/identity/test_traps.py): with filters in the query each makes one more state.
MAX_UNTRIED_CHOICES = 3

#: Consecutive repetitions of the same path segments from which on a URL is refused.
#: Set by hand on the fixture traps (tests/unit/pipeline/explore/identity/test_traps.py).
MAX_SEGMENT_REPEATS = 3

#: Divisor of `explore.trap_budget` for groups of pages that are named by dates, which never end. The quotient is
#: rounded up. Set by hand on the fixture traps (tests/unit/pipeline/explore/identity/test_traps.py).
DATE_BUDGET_DIVISOR = 2

# ---- order of exploration (`engine/novelty.py`) --------------------------------------------------------------------

#: Number of results that the expectation from a more general kind counts for. Set by hand; see `bench.coverage`.
PRIOR_WEIGHT = 2.0

#: Expected gain of a page that shows another thing in the way of a visited page, relative to a page of which nothing is
#: known. Set by hand; see `bench.coverage`.
REPEATED_SHARE = 0.15

#: Share of an element's places (role and path without positions) that are new to the map, from which on a page is of a
#: new kind. Set by hand; see `bench.coverage`.
NEW_PLACE_SHARE = 0.2

#: Number of controls with new names from which on a page is of a new kind. Set by hand; see `bench.coverage`.
MIN_NEW_CONTROLS = 3

#: Positions of one step of a path from which on its elements are items of a list.
MIN_LIST = 3

#: Elements of one role and place from which on their names are content (rows of a list) and not controls.
MAX_CONTROLS_OF_A_PLACE = 3

#: Gain of a page all of whose words are new, relative to a page of a new kind. Set by hand; see `bench.coverage`.
GAIN_OF_WORDS = 0.2

# ---- sibling elements (`siblings.py`) ------------------------------------------------------------------------------

#: Budget that an element with a result gives back to its siblings; one without a result costs 1.
#: Set by hand; no benchmark (tests/unit/pipeline/explore/identity/test_siblings.py).
SIBLING_BUDGET_PER_RESULT = 2

#: Budget of items that only a listener around them may mean, for the whole site, in `explore.alike_budget`s.
#: Set by hand; no benchmark.
SITE_BUDGETS = 2

#: What an item of a list without a result costs if the listener is that of the whole page: three of a list are tried.
#: Set by hand; no benchmark.
PAGE_LISTENER_COST = 4

#: Last numbered steps of an XPath of which one may count the siblings. Set by hand; no benchmark.
SIBLING_PATH_STEPS = 5

# ---- evidence of states (`evidence.py`) ----------------------------------------------------------------------------

#: Features, and separately elements, sampled of each state. With 48 samples the standard error of a share of 0.8 is
#: 0.06, which separates the shares that `bench/likeness.py` measured.
EVIDENCE_SAMPLE = 48

#: Features that a page must show, and separately must not show; a random part of larger changes.
#: Set by hand; no benchmark.
MAX_CHANGED_FEATURES = 64

#: Features that a page must not show, per other state at the same URL. Set by hand; no benchmark.
HIDDEN_FEATURES_PER_SIBLING = 2

# ---- refreshes (`waygraph.pipeline.explore.refresh`) ---------------------------------------------------------------

#: Jaccard similarity of structures from which on an in-page action showed the same as in the prior exploration.
#: Set by hand; no benchmark (tests/unit/pipeline/explore/refresh/test_refresh.py).
SAME_OUTCOME_SIMILARITY = 0.9

#: Snapshots taken of a page that seems to have changed, the first one included, to separate changes from noise.
#: Set by hand; no benchmark (tests/unit/pipeline/explore/refresh/test_refresh.py, `make soak-refresh`).
SNAPSHOTS_OF_CHANGED_PAGE = 3

#: Cost of a first snapshot with its screenshot, in snapshots of a page that looks as before. Measured on the demo
#: shop; other sites are near enough.
FIRST_SNAPSHOT_COST = 3.0

#: Cost of an action among the other work of its round, in the same unit. Measured on the demo shop.
ACTION_COST = 1.1

#: Cost of an action whose state is reached for this action alone, in the same unit. Measured on the demo shop.
LONE_ACTION_COST = 2.5

#: Time that a re-asked answer takes besides the answer itself (reach the page, take a snapshot), in milliseconds.
#: Set by hand; no benchmark.
OVERHEAD_MS = 250.0

#: Largest share of the work of a refresh that goes into page loads; actions get the rest. Set by hand; no benchmark.
PAGES_SHARE = 0.75
#: Part of these pages that may go to those that the site says have changed. Set by hand: sites do not list every page.
LISTED_SHARE = 0.75

#: Share of the re-asked actions that is drawn with equal chances; the share of stale edges is estimated from these.
#: Set by hand; no benchmark.
UNIFORM_SHARE = 0.5

#: Prior of an answer's change rate: one change in ten, worth `PRIOR_CHECKS` checks. Set by hand; no benchmark.
PRIOR_CHECKS, PRIOR_CHANGES = 4, 0.4
