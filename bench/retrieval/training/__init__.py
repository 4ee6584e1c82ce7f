"""Training pairs from documentation packages, and the fine-tuning of a sentence model on them."""
