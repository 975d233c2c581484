"""Real NCCL on one GPU, over a site's cables; run by hand on a machine that has one."""
