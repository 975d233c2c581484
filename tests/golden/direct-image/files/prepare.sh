#!/bin/bash
# Can run twice.
set -e
cp -n /workspace/mods/fix-template/template.jinja .
exec "$@"
