#!/bin/sh
# Somebody new: from what two nodes printed to a bundle that others can review, in five commands.
set -eu
sparkgen init --from spark1.txt --from spark2.txt --user nvidia sites/pair.yaml
sparkgen validate --strict
sparkgen fit sites/pair.yaml
sparkgen build
sparkgen verify out/pair
