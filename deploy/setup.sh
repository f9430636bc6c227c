#!/bin/sh
# What a new or upgraded server needs: work pool, deployments, blocks, automations. Safe to repeat.
set -eu
prefect --no-prompt work-pool inspect uom-sandbox > /dev/null 2>&1 ||
  prefect --no-prompt work-pool create uom-sandbox --type process
prefect --no-prompt deploy --all
uom-sandbox blocks register
uom-sandbox automations register
