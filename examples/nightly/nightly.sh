#!/bin/sh
# A nightly release by cron, of the day that has ended, each day at 3:00 with two further attempts:
#
#   0 3-5 * * * NIGHTLY=/srv/nightly /srv/nightly/nightly.sh
#
# Cron has a short PATH: write the whole path of `voxpop` below, or set PATH in the crontab. Without GNU date, give the
# day as the argument.
#
# `voxpop run words.toml --dry-run` prints the digest of the job. To run only the job that was approved, add
# --digest sha256:... below.
set -eu
: "${NIGHTLY:?the folder with posts/, words/ and team.ledger}"
DAY=${1:-$(date -u -d yesterday +%F)}
export NIGHTLY DAY
exec voxpop run "$(dirname "$0")/words.toml"
