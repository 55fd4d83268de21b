"""Which words are words of English, and which are names: told by how likely the tagger HanTa takes each to be.

HanTa knows some 29,000 forms of the British National Corpus and builds others from stems and endings. A slip of the pen
is neither, and a word of another language or trade is not either: who asks has to be content with "not known". So are
words of more than ``grammar.LONGEST_TAGGED`` letters, which nobody takes apart.
"""

from memory.text.grammar import word_tags


def word_known(word: str) -> bool:
    """Tell whether ``word``, folded, is a word of English that is no mere name. About 50 microseconds, once."""
    return any(tag != "NP0" for tag in word_tags(word))


def name_known(word: str) -> bool:
    """Tell whether ``word``, folded, is a name before anything else: "anna", "oslo", "williams"."""
    return word_tags(word)[:1] == ("NP0",)
