"""The order in which leads get what not all of them can have: pages of many kinds first, the records of a list last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from waygraph.index.graph.model import Lead
from waygraph.index.graph.url_templates import Template, url_templates


def kinds_first(leads: Iterable[Lead]) -> list[Lead]:
    """Return leads in an order in which the first one of each kind comes before the second one of any.

    A lead is of the kind of that template of its URL which most leads have: of a thousand records, the first comes with
    the first of ten reports. Leads that a policy refuses are left out: nobody is led there.
    """
    known = [lead for lead in leads if not lead.refusal]
    templates = {lead.id: [template for template, _ in url_templates(lead.url)] for lead in known}
    sizes = Counter(template for each in templates.values() for template in each)
    taken: Counter[Template] = Counter()
    ranks = {}
    for lead in known:
        kind = max(templates[lead.id], key=sizes.__getitem__, default=())
        ranks[lead.id] = taken[kind]
        taken[kind] += 1
    return sorted(known, key=lambda lead: ranks[lead.id])
