"""What is known of a model's shape: the architecture, and how Hugging Face files say it."""
