"""How does an explored site become a published map? One actor that writes, drafts, and what changed since before."""
