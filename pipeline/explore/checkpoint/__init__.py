"""The journal of an exploration, from which an interrupted run resumes."""
