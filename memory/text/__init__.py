"""What a text says, read without a model: identifiers, names, sentences, facts, differences that matter."""
