"""Page phenomena: one area of pages per phenomenon, with its known answer.

`AREAS` belong on one site (`tests.sites.answers.site_pages`), with a second server for the other origin.
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
    *rows.AREAS,
    *growing.AREAS,
)
