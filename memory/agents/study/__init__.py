"""Study: turns a long message into topics in the background, then links them with existing ones (docs/study.md)."""
