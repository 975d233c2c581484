"""Token vocabularies that engines download unless they find them in a folder.

Source: openai-harmony, src/tiktoken_ext/public_encodings.rs, and tiktoken,
tiktoken_ext/openai_public.py.
"""

from generator.records import record

# The variable with the folder that they are read from instead of the internet.
VARIABLE = "TIKTOKEN_ENCODINGS_BASE"


@record
class Vocabulary:
    """A file, and the checksum that its readers verify."""

    file: str
    sha256: str

    @property
    def url(self) -> str:
        """The URL it comes from."""
        return f"https://openaipublic.blob.core.windows.net/encodings/{self.file}"


# The vocabularies of harmony, gpt-oss's conversation format.
HARMONY = (
    Vocabulary(
        "o200k_base.tiktoken", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
    ),
    Vocabulary(
        "cl100k_base.tiktoken", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
    ),
)
# The reasoning parser of models that use it.
HARMONY_PARSER = "openai_gptoss"
