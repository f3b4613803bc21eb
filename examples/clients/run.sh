#!/bin/sh
# run.sh BIN PROVIDERS COMMAND…: starts the scripted providers and the gateway BIN before them,
# runs COMMAND with INTERLOCK_URL, INTERLOCK_KEY and PROVIDERS_CONTROL set, and stops both.
set -eu
bin=$1 providers=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
mkfifo "$dir/stdin"
gateway=
stop() {
	status=$?
	exec 9>&- || true
	if [ -n "$gateway" ]; then
		kill "$gateway" 2>/dev/null || true
		wait "$gateway" 2>/dev/null || true
	fi
	if [ "$status" -ne 0 ] && [ -f "$dir/log" ]; then tail -n 30 "$dir/log" >&2; fi
	rm -rf "$dir"
	exit "$status"
}
trap stop EXIT
trap 'exit 1' INT TERM

"$providers" "$here/main.fault" <"$dir/stdin" >"$dir/ready" &
exec 9>"$dir/stdin"
wait_for() {
	n=0
	until "$@" >/dev/null 2>&1; do
		n=$((n + 1))
		if [ "$n" -gt 150 ]; then echo "run.sh: waited in vain for: $*" >&2; exit 1; fi
		sleep 0.1
	done
}
wait_for grep -q control "$dir/ready"
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$dir/ready"; }
listen=$(field free)
INTERLOCK_URL="http://$listen/v1"
INTERLOCK_KEY=ilk-client-0123456789
PROVIDERS_CONTROL=$(field control)
export INTERLOCK_URL INTERLOCK_KEY PROVIDERS_CONTROL
sed "s|@listen@|$listen|; s|@main@|$(field main)|; s|@key@|$INTERLOCK_KEY|" "$here/interlock.yaml.in" >"$dir/interlock.yaml"
(cd "$dir" && exec "$bin" serve --config "$dir/interlock.yaml") >"$dir/log" 2>&1 9>&- &
gateway=$!
# Any answer will do: without a key it is 401.
wait_for node -e "fetch('$INTERLOCK_URL/models').then(r => process.exit(r.status === 401 ? 0 : 1), () => process.exit(1))"
"$@" 9>&-
