#!/usr/bin/env bash
# Audits one of the three providers of Wei et al., set up in network namespaces: audit.sh PROVIDER DIR [PLAN]
# PROVIDER is cdma-i, cdma-ii or gprs-i; files PROVIDER-*.toml beside this script are its proxies. Needs Linux and root.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
provider=$1
plan=$(realpath "${3:-$here/plan.toml}")
mkdir -p "$2"
cd "$2"
rm -f server.txt middle-ready

cat >server.sh <<'END'
exec pepscope probe serve --state state >server.txt 2>server.log
END
cat >middle.sh <<'END'
for file in "$@"; do
    pepscope proxy --config "$file" --setup
    log=$(basename "$file" .toml).log
    pepscope proxy --config "$file" 2>"$log" &
    until grep -q ready "$log"; do sleep 0.1; done
done
touch middle-ready
wait
END
cat >mobile.sh <<'END'
until grep -q MOBILE server.txt 2>/dev/null && [ -e middle-ready ]; do sleep 0.1; done
export PEPSCOPE_PROBE_KEY=$(sed -n 's/^KEY //p' server.txt)
pepscope audit "$1" --server "$PEPSCOPE_SERVER" -o runs --json >audit.json
END

pepscope emulate "$here/path.toml" --middle 1 --server-command "sh server.sh" \
    --middle-command "bash middle.sh $(echo "$here/$provider"-*.toml)" -- bash -e mobile.sh "$plan" >&2
pepscope audit runs/*.zip
