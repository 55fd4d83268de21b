"""The assistant: finds the intent of a message, calls tools, replies, and records the conversation."""
