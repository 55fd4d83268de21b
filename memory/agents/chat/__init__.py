"""The assistant: what a message wants, what is said and done about it, and the record of the conversation."""
