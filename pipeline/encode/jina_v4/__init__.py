"""How does jina-embeddings-v4 turn screenshots and questions into multi-vectors, on transformers' own Qwen2.5-VL?"""
