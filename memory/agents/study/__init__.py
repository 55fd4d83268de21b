"""Study: a long message becomes topics in the background, first by itself, then among what is known (docs/study.md)."""
