#!/usr/bin/env bash
# Stands for the mod of this name.
