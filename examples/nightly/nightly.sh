#!/bin/sh
# A nightly release by cron, each day at 3:00 UTC, with two further attempts:
#
#   0 3-5 * * * NIGHTLY=/srv/nightly /srv/nightly/nightly.sh
#
# `voxpop run words.toml --dry-run` prints the digest of the job. To run only the job that was approved, add
# --digest sha256:... below.
set -eu
: "${NIGHTLY:?the folder with posts/, words/ and team.ledger}"
DAY=${1:-$(date -u +%F)}
export NIGHTLY DAY
exec voxpop run "$(dirname "$0")/words.toml"
