"""The assistant: the intent of a message, tool calls and the reply, and the record of the conversation."""
