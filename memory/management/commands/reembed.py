"""manage.py reembed: replaces the vectors of other embedding models with vectors of the current model."""

from typing import Any

from tqdm import tqdm

from memory.core.errors import MemoryProblem
from memory.core.problem_codes import ProblemCode
from memory.embedding import embedder_get
from memory.ingest.embed_pending import vectors_fill, vectors_missing_count, vectors_resize
from memory.management.store_command import CommandRefused, StoreCommand


class Command(StoreCommand):
    """Works in small committed steps. If it is stopped, the next start continues."""

    help = "Embed every topic anew whose vector is of another model than the present one. Can be stopped and resumed."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Embed until no topic is left. Until a topic has its new vector, search finds it only by its words."""
        embedder = embedder_get()
        try:
            # Check that the new model works before old vectors are discarded.
            embedder.embed_passages(["Is anybody there?"])
            if (old := vectors_resize(embedder.dimension)) is not None:
                self.stdout.write(
                    f"Vectors had {old} numbers and get {embedder.dimension}: all topics are embedded anew."
                )
            with tqdm(total=vectors_missing_count(), unit="topic", desc=f"Embedding with {embedder.model_name}") as bar:
                for given in vectors_fill(other_models=True):
                    bar.update(given)
        except MemoryProblem as problem:
            raise CommandRefused(f"{problem.sentence} Run it again to go on.", problem.code) from problem
        left = vectors_missing_count()
        if left:
            raise CommandRefused(
                f"{left} topics are still without a vector of {embedder.model_name}; run it again.",
                ProblemCode.WORK_LEFT,
            )
        self.stdout.write(f"All vectors come from {embedder.model_name}.")
