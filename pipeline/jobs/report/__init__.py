"""Reports of runs: outcomes of sites, totals, the JSON file and the HTML page."""
