"""What came of a run? Outcomes of its sites, the numbers they add up to, and the page that people read."""
