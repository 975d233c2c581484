"""Nodes simulated on one machine with systemd, D-Bus, networkd and netplan, joined by veths."""
