"""Which words are words of English, and which are names: told by how likely the tagger HanTa takes each to be.

HanTa knows some 29,000 forms of the British National Corpus and builds others from stems and endings. A slip of the pen
is neither, and a word of another language or trade is not either: who asks has to be content with "not known".
"""

import threading
from functools import lru_cache
from typing import Any

_LOCK = threading.Lock()
# Known forms have a logarithm of 9 to 17 below nothing, guessed ones of 28 and more.
_LIKELY = -22.0


@lru_cache(maxsize=1)
def _tagger() -> Any:
    # Reading the model takes a tenth of a second, and a process that compares nothing needs none of it.
    from HanTa.HanoverTagger import HanoverTagger

    return HanoverTagger("morphmodel_en.pgz")


@lru_cache(maxsize=65_536)
def _readings(word: str) -> tuple[bool, bool]:
    with _LOCK:
        tagger = _tagger()
        kept = tagger.cache.get(word)
        if kept is not None:
            tags = [tagger.int2tag[tag] for tag, _likely in sorted(kept, key=lambda reading: -reading[1])]
        else:
            tags = [tag for tag, likely in tagger.tag_word(word) if likely > _LIKELY]
    return any(tag != "NP0" for tag in tags), tags[:1] == ["NP0"]


def word_known(word: str) -> bool:
    """Tell whether ``word``, folded, is a word of English that is no mere name. About 50 microseconds, once."""
    return _readings(word)[0]


def name_known(word: str) -> bool:
    """Tell whether ``word``, folded, is a name before anything else: "anna", "oslo", "williams"."""
    return _readings(word)[1]
