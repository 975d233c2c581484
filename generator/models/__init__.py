"""The shape of a model: its architecture, and how Hugging Face files describe it."""
