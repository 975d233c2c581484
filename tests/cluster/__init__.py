"""Nodes on one machine: a real systemd with D-Bus, networkd and netplan, and wires between them."""
