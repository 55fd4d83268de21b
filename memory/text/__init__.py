"""Reading of texts without a model: identifiers, names, sentences, facts, significant differences."""
