"""The origin of each line of a bundle: `tracing` follows templates, `origins` values."""

from generator.why.lines import why as why
