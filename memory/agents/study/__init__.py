"""Study: makes topics from a long message in the background, then links them with existing topics (docs/study.md)."""
