"""The text encoder: what a state says, and the sentence model that embeds it."""
