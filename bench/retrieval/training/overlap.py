"""List the questions about invented applications that are closest to questions of the benchmark.

    python -m bench.retrieval.training.overlap --store FOLDER [--applications FOLDER] [--show 20]

Compares all questions of `bench/retrieval/questions` and `bench/function_pages.json` with those that the adapters
are trained on, by cosines of the published model of `text`. `--store` keeps the vectors.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from bench.function_pages import load
from bench.retrieval.embeddings import remembering_encoder
from bench.retrieval.maps import names
from bench.retrieval.queries import read_queries
from bench.retrieval.training.adapter import APPLICATIONS, VALIDATE
from bench.retrieval.training.applications import read_applications

LEVELS = (0.8, 0.85, 0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--applications", type=Path, default=APPLICATIONS)
    parser.add_argument("--show", type=int, default=20, help="number of pairs to list")
    options = parser.parse_args()
    trained = [
        (question, application.name)
        for application in read_applications(options.applications)
        if application.name not in VALIDATE
        for question, _ in application.questions
    ]
    asked = [(query.ask, site) for split in ("dev", "test") for site in names(split) for query in read_queries(site)]
    asked += [(page.question, page.site) for page in load()]
    model = remembering_encoder("text", options.store).models[0]
    cosines = model.embed([text for text, _ in asked]) @ model.embed([text for text, _ in trained]).T
    model.save()
    closest, best = cosines.argmax(1), cosines.max(1)
    counts = ", ".join(f"{int((best >= level).sum())} from {level:g}" for level in LEVELS)
    print(f"{len(trained)} questions trained on, {len(asked)} of the benchmark; cosine of the closest: {counts}")
    for row in np.argsort(-best)[: options.show]:
        print(f"{best[row]:.3f}  {asked[row]}  {trained[closest[row]]}")


if __name__ == "__main__":
    main()
