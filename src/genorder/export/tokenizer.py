"""The vocabulary as a Hugging Face tokenizer: one word per token, words separated by white space.

The word of a token is the token itself if possible, as for integers and plain words. White space, `%`, characters
that UTF-8 cannot encode, and `<` in a token that contains the name of a special token, are percent-encoded as in a URL
(`a b` is the word `a%20b`). The empty token is the word `%`.
"""

from urllib.parse import quote

from genorder.data import Vocabulary
from genorder.data.encoding import SPECIAL_NAMES

_EMPTY = "%"  # in other words, two digits follow each %


def word_of(token: str) -> str:
    """The word of a token, different for different tokens.

    `urllib.parse.unquote(word, errors="surrogatepass")` gives the token again, but for the empty one.
    """
    if not token:
        return _EMPTY
    encoded = "%<" if any(name in token for name in SPECIAL_NAMES) else "%"
    return "".join(
        quote(character, safe="", errors="surrogatepass")
        if character in encoded or character.isspace() or "\ud800" <= character <= "\udfff"
        else character
        for character in token
    )


def tokenizer_files(vocabulary: Vocabulary, positions: int) -> dict[str, dict[str, object]]:
    """`tokenizer.json` and its configuration, as plain data. The tokenizer raises an error for unknown words."""
    pad, separator, end = SPECIAL_NAMES
    words = [*SPECIAL_NAMES, *map(word_of, vocabulary.tokens)]
    return {
        "tokenizer.json": {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {
                    "id": number,
                    "content": name,
                    "single_word": False,
                    "lstrip": False,
                    "rstrip": False,
                    "normalized": False,
                    "special": True,
                }
                for number, name in enumerate(SPECIAL_NAMES)
            ],
            "normalizer": None,
            "pre_tokenizer": {"type": "WhitespaceSplit"},
            "post_processor": None,
            "decoder": None,
            "model": {
                "type": "WordLevel",
                "vocab": {word: number for number, word in enumerate(words)},
                "unk_token": "<unk>",  # not in the vocabulary, so that an unknown word is an error
            },
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": pad,
            "sep_token": separator,
            "eos_token": end,
            "model_max_length": positions,
            "clean_up_tokenization_spaces": False,
        },
    }
