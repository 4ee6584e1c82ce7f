"""The demo site: a small web shop with a back office."""

from waygraph.demo_site.site import DemoSite

__all__ = ["DemoSite"]
