"""What commands print: search results and paths, element outcomes, progress and summaries of runs, diff pages."""
