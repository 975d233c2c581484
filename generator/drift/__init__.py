"""How nodes differ from the bundle that they were given, by what each difference means."""

from generator.drift.comparison import NEVER as NEVER
from generator.drift.comparison import drift as drift
from generator.drift.comparison import missing as missing
