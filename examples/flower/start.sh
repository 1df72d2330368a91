#!/bin/sh
# A SuperLink and three SuperNodes as separate processes on loopback, until Ctrl-C. Without TLS: for loopback only.
cd "$(dirname "$0")" || exit 1
export FLWR_HOME="$PWD/home" FLWR_TELEMETRY_ENABLED=0
trap 'kill $(jobs -p) 2>/dev/null; wait' INT TERM EXIT
# The node's own bounds: of all runs together, and of one run.
BOUNDS="total-epsilon=4.0 total-delta=2e-5 max-epsilon=1.0"
flower-superlink --insecure --port 8000 --disable-runtime-dependency-installation &
sleep 3
for node in 0 1 2; do
	mkdir -p "state$node" && chmod 700 "state$node"
	flower-supernode --insecure --superlink 127.0.0.1:8000 --port $((9100 + node)) \
		--node-config "source=\"$PWD/node$node.parquet\" user=\"who\" items=\"what\" $BOUNDS state=\"$PWD/state$node\"" &
done
wait
