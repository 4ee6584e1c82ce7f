"""Does a question find its page state? A benchmark of retrieval over states of web user interfaces."""
