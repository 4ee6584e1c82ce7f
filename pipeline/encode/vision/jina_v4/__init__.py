"""The `jina-v4` encoder: jina-embeddings-v4 on the Qwen2.5-VL classes of transformers."""
