"""Table of leads: what other columns have is not written twice."""

from dataclasses import replace

import pytest

from waygraph.index.graph import Action, Lead, lead_id
from waygraph.index.store.leads import leads_table, read_leads

URL = "http://s/issues/gantt"
LEAD = Lead(lead_id(URL), URL, ("Gantt", "Plan"), "Issues", "", "a", Action("click", name="Gantt", target=URL), 2)


@pytest.mark.parametrize(
    "action",
    [
        LEAD.action,
        Action("click", name="Gantt", target=f"{URL}#top"),
        Action("click", name="A longer name than the lead keeps", target=URL),
        Action("click", target=URL),
    ],
)
def test_leads_are_read_as_they_were_written(action):
    for lead in (replace(LEAD, action=action), replace(LEAD, action=action, names=())):
        assert read_leads(leads_table({lead.id: lead})) == {lead.id: lead}


def test_name_and_url_are_written_once():
    (row,) = leads_table({LEAD.id: LEAD}).to_pylist()
    assert len(row["action"]["name"]) == len(row["action"]["target"]) == 1
