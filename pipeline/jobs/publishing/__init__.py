"""Publishing of explored sites: the publisher actor, drafts, and changes since the version before."""
