"""Page phenomena: one area of pages per phenomenon, with its known answer.

`AREAS`, and `LISTS`, belong on one site (`tests.sites.answers.site_pages`), with a second server for the other origin.
"""

from tests.sites.phenomena import arrivals, clicks, covers, documents, forms, growing, platform, routing, rows, widgets

AREAS = (
    *documents.AREAS,
    *clicks.AREAS,
    *widgets.AREAS,
    *platform.AREAS,
    *routing.AREAS,
    *arrivals.AREAS,
    *covers.AREAS,
    *forms.AREAS,
)
#: Items of lists that only a listener means, and lists that grow: an exploration of their own, since they take as long.
LISTS = (*rows.AREAS, *growing.AREAS)
