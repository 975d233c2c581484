"""What SGLang rejects or fails on at startup.

Source: the wheel of 0.5.23; a condition's release is the first whose wheel has its message.
"""

from generator.engines.sglang.startup import (
    attention,
    draft_settings,
    drafts,
    parallel,
    requirements,
    scheduler,
    serving,
)
from generator.engines.startup import Condition

CONDITIONS: tuple[Condition, ...] = (
    *parallel.CONDITIONS,
    *drafts.CONDITIONS,
    *draft_settings.CONDITIONS,
    *requirements.CONDITIONS,
    *scheduler.CONDITIONS,
    *attention.CONDITIONS,
    *serving.CONDITIONS,
)
