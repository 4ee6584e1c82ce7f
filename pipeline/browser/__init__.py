"""Browser: processes, pages, network guard and egress proxy."""
