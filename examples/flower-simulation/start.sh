#!/bin/sh
# A SuperLink that simulates nodes, on loopback, until Ctrl-C.
cd "$(dirname "$0")" || exit 1
export FLWR_HOME="$PWD/home" FLWR_TELEMETRY_ENABLED=0
exec flower-superlink --insecure --simulation --port 8100 --disable-runtime-dependency-installation
