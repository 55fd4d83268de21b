"""manage.py reembed: moves a store from one embedding model to the present one."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from memory.domain.errors import MemoryProblem
from memory.embedding import embedder_get
from memory.ingest.waiting import TOPICS_PER_TURN, foreign_count, foreign_set_back, vectors_resize, waiting_embed


class Command(BaseCommand):
    """Works in small steps, each committed by itself: stopped at any moment, it goes on where it was."""

    help = "Embed every topic anew whose vector is of another model than the present one. Can be stopped and resumed."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Embed until nothing is left; topics are found by their words meanwhile."""
        embedder = embedder_get()
        if (old := vectors_resize(embedder.dimension)) is not None:
            self.stdout.write(f"Vectors had {old} numbers and get {embedder.dimension}: all topics are embedded anew.")
        with tqdm(total=foreign_count(), unit="topic", desc=f"Embedding with {embedder.model_name}") as bar:
            try:
                while True:
                    foreign_set_back(TOPICS_PER_TURN)
                    done = waiting_embed()
                    if not done:
                        break
                    bar.update(done)
            except MemoryProblem as problem:
                raise CommandError(f"{problem.sentence} Run it again to go on.") from problem
        self.stdout.write(f"All vectors are {embedder.model_name}'s.")
