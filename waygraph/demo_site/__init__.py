"""What does waygraph map when there is no website at hand? A small shop of its own, with a back office."""

from waygraph.demo_site.site import DemoSite

__all__ = ["DemoSite"]
