"""Extracts facts from a text, and stores each as a topic through ingest."""
