"""WebArena (Zhou et al. 2024, arXiv:2307.13854): placeholders of its task files, and the depths of exploration."""

from __future__ import annotations

import re

#: Names in task files that stand for the URL of a site, such as `__SHOPPING__`.
PLACEHOLDER = re.compile("__[A-Z][A-Z0-9_]*?__")
#: Separator of several start pages of one task.
START_URL_SEPARATOR = "|AND|"
#: Exploration depths by placeholder in the experiments of WebNavigator (section 4.1): Map 1; CMS, Shopping and
#: GitLab 2; Reddit 3.
DEPTHS = {"__MAP__": 1, "__SHOPPING_ADMIN__": 2, "__SHOPPING__": 2, "__GITLAB__": 2, "__REDDIT__": 3}
#: Name of the page that links to all sites.
HOMEPAGE = "homepage"


def placeholder_of(site: str) -> str:
    """Return the placeholder of a site, whose name is that of the list `sites` of a task.

    >>> placeholder_of("shopping_admin"), placeholder_of("demo-shop")
    ('__SHOPPING_ADMIN__', '__DEMO_SHOP__')
    """
    return f"__{re.sub('[^A-Z0-9]+', '_', site.upper()).strip('_')}__"
