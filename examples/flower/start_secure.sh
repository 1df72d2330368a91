#!/bin/sh
# As start.sh, with TLS, and with nodes that must show a key that was registered. Until Ctrl-C.
cd "$(dirname "$0")" || exit 1
export FLWR_HOME="$PWD/home" FLWR_TELEMETRY_ENABLED=0
BOUNDS="total-epsilon=4.0 total-delta=2e-5 max-epsilon=1.0"
trap 'kill $(jobs -p) 2>/dev/null; wait' INT TERM EXIT
flower-superlink --port 8000 --disable-runtime-dependency-installation --enable-supernode-auth \
	--ssl-ca-certfile keys/authority.pem --ssl-certfile keys/server.pem --ssl-keyfile keys/server.key &
sleep 10
for node in 0 1 2; do
	mkdir -p "state$node" && chmod 700 "state$node"
	flwr supernode register "keys/node$node.pub" secure
	flower-supernode --root-certificates keys/authority.pem --auth-supernode-private-key "keys/node$node.key" \
		--superlink 127.0.0.1:8000 --port $((9100 + node)) \
		--node-config "source=\"$PWD/node$node.parquet\" user=\"who\" items=\"what\" $BOUNDS state=\"$PWD/state$node\"" &
done
wait
