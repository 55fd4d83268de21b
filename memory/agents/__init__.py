"""Agents: chat, the tools that a model may call, and the study of long texts."""
