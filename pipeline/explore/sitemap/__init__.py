"""What a site lists of itself without a page load: sitemaps, feeds and descriptions of its search."""
