"""manage.py demo: loads half a year of one assistant's memory, so that no page is empty."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandParser
from django.utils import timezone
from tqdm import tqdm

from memory.core.problem_codes import ProblemCode
from memory.demo.build import story_build
from memory.demo.store import story_load, story_size
from memory.jobs.tasks import DEMO_SEED, DEMO_TOPICS
from memory.management.store_command import CommandRefused, StoreCommand


class Command(StoreCommand):
    """Fills the store. The same arguments always give the same topics."""

    help = "Fill the store with a believable half year of one assistant's memory."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--topics", type=int, default=DEMO_TOPICS, help=f"The number of topics (default {DEMO_TOPICS})."
        )
        parser.add_argument(
            "--seed",
            type=int,
            default=DEMO_SEED,
            help="The seed of the random numbers. Another seed creates other data.",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        now = timezone.now()
        if not 1 <= options["topics"] <= 4000:
            raise CommandRefused("--topics must lie between 1 and 4000.", ProblemCode.INVALID_MEMBER)
        # The demo may be the first command, before any migration.
        call_command("migrate", verbosity=0, interactive=False)
        story = story_build(now=now, seed=options["seed"], topics=options["topics"])
        with tqdm(total=story_size(story), unit="step", desc="Half a year", dynamic_ncols=True) as bar:
            story_load(story, now=now, progress=bar.update)
        self.stdout.write(
            f"The store now holds {len(story.topics)} topics with {len(story.revisions)} later revisions, "
            f"{len(story.retrievals)} retrievals and {len(story.changes)} changes by operators."
        )
