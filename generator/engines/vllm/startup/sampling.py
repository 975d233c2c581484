"""vLLM's sampling: sharded over ranks, and with the mask that was sampled from."""

CONDITIONS = ()
