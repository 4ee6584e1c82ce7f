"""Tiny random models of other late-interaction families, in the format of transformers."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    ColModernVBertConfig,
    ColModernVBertForRetrieval,
    ColModernVBertProcessor,
    ColPaliConfig,
    ColPaliForRetrieval,
    ColPaliProcessor,
    PreTrainedTokenizerFast,
)
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

DIM = 16
SPECIAL = (
    "[PAD]", "[CLS]", "[SEP]", "<bos>", "<eos>", "<fake_token_around_image>", "<image>", "<end_of_utterance>",
    "<global-img>", "<|begin_of_text|>", *(f"<row_{row}_col_{col}>" for row in range(1, 7) for col in range(1, 7)),
)  # fmt: skip
_TEXT = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
_VISION = {**_TEXT, "hidden_size": 24, "model_type": "siglip_vision_model", "image_size": 32, "patch_size": 8}


def make_tokenizer(**named: str) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(["User: Describe the image. Question: where are my orders"] * 20, trainer)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", **named)


def make_colmodernvbert(folder: Path) -> Path:
    """Pictures are cut into tiles of 32 pixels, each 4 tokens."""
    tokenizer = make_tokenizer(cls_token="[CLS]", sep_token="[SEP]")
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
    config = ColModernVBertConfig(
        vlm_config={
            "model_type": "modernvbert",
            "image_token_id": tokenizer.convert_tokens_to_ids("<image>"),
            "pixel_shuffle_factor": 2,
            "text_config": {**_TEXT, **special, "model_type": "modernbert", "vocab_size": len(tokenizer)},
            "vision_config": _VISION,
        },
        embedding_dim=DIM,
    )
    images = Idefics3ImageProcessorPil(size={"longest_edge": 96}, max_image_size={"longest_edge": 32})
    torch.manual_seed(0)
    ColModernVBertForRetrieval(config).save_pretrained(folder)
    ColModernVBertProcessor(images, tokenizer, image_seq_len=4).save_pretrained(folder)
    return folder


def make_colpali(folder: Path) -> Path:
    """Pictures are 16 tokens, whatever their size."""
    images = SiglipImageProcessorPil(size={"height": 32, "width": 32})
    images.image_seq_length = 16
    processor = ColPaliProcessor(images, make_tokenizer(bos_token="<bos>", eos_token="<eos>"))
    vocabulary = len(processor.tokenizer)
    text = {**_TEXT, "model_type": "gemma", "vocab_size": vocabulary, "num_key_value_heads": 1, "head_dim": 16}
    config = ColPaliConfig(
        vlm_config={
            "model_type": "paligemma",
            "image_token_index": processor.image_token_id,
            "projection_dim": 32,
            "hidden_size": 32,
            "vocab_size": vocabulary,
            "text_config": text,
            "vision_config": {**_VISION, "vision_use_head": False},
        },
        embedding_dim=DIM,
    )
    torch.manual_seed(0)
    ColPaliForRetrieval(config).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
