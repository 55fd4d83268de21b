"""Study: makes topics of a long message in the background, then links them with existing topics (docs/study.md)."""
