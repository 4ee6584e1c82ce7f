"""Reports of stored runs as HTML files, which the components of the page draw.

`figures` adds up; `traces` collects what the agents saw and did, within the limits of a file; `page` makes the content
of a report; `write` writes the files.
"""
