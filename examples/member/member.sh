#!/usr/bin/env bash
# Runs one server with bindings, and two member clusters, each a server with a node and
# an agent. A binding preempts another on one of them. The script ends every process
# that it started, by its process ID.
set -euo pipefail
cede=${1:-bin/cede}
here=$(cd "$(dirname "$0")" && pwd)
base=${MEMBER_PORT:-14700}

# Checked before anything is started: ports base+1 to base+13.
refuse() { echo "MEMBER_PORT=$base: $*" >&2; exit 2; }
case $base in
  '' | *[!0-9]* | ??????*) refuse 'must be a port such as 14700; the next 13 must be free' ;;
esac
base=$((10#$base))
if [ "$base" -lt 1024 ] || [ "$base" -gt 65500 ]; then refuse 'must be between 1024 and 65500'; fi
for p in 1 2 3 11 12 13; do
  if (exec 3<>"/dev/tcp/127.0.0.1/$((base + p))") 2>/dev/null; then
    refuse "port $((base + p)) is in use; set MEMBER_PORT to a port with 13 free ports after it"
  fi
done

dir=$(mktemp -d)
declare -A pid=()

finish() {
  code=$?
  trap - EXIT INT TERM
  for p in "${pid[@]}"; do kill -KILL "$p" 2>/dev/null || true; done
  wait 2>/dev/null || true
  if [ $code -ne 0 ]; then
    printf '\nThe script failed. Last lines of the logs:\n' >&2
    tail -n 5 "$dir"/*.log >&2 || true
  fi
  rm -rf "$dir"
  exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM

say() { printf '\n== %s\n\n' "$*"; }
http() { echo "http://127.0.0.1:$((base + $1))"; }
export CEDE_ADDR
CEDE_ADDR=$(http 1)

start() { # name, number, further configuration
  cat >"$dir/$1.yaml" <<YAML
name: $1
data_dir: $dir/$1
listen: {http: "127.0.0.1:$((base + $2))", rpc: "127.0.0.1:$((base + 10 + $2))", metrics: ""}
server: {enabled: true}
$3
YAML
  "$cede" agent --config "$dir/$1.yaml" 2>>"$dir/$1.log" >/dev/null &
  pid[$1]=$!
}

cluster() { # name, number
  start "$1" "$2" "client:
  enabled: true
  resources: {cpu: 2000, memory: 4096, disk: 10000}
  drivers: {sim: {enabled: true}, exec: {enabled: false}}
  pressure: {enabled: false}
member: {enabled: true, cluster: $1, servers: [\"$(http 1)\"], attributes: {region: $1}, poll: 200ms}"
}

until_true() { # what, command...
  local what=$1 end=$((SECONDS + 60))
  shift
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $end ]; then
      echo "timeout after one minute: $what" >&2
      exit 1
    fi
    sleep 0.1
  done
}

offers() { [ "$("$cede" cluster status "$1" -t '{{.Status}} {{.Capacity.cpu}}' 2>/dev/null)" = 'ready 2000' ]; }
ready() { [ "$("$cede" binding status "$1" -t '{{.Status}} {{.Ready}}' 2>/dev/null)" = "bound $2" ]; }

say 'Start a server, and two member clusters that register with it.'
start global 1 ''
until_true 'a response of the server' "$cede" operator scheduler set --preempt-binding --priority-delta 1
cluster eu 2
cluster us 3
until_true 'the capacity of both clusters' eval 'offers eu && offers us'
"$cede" cluster list

say 'Apply two bindings that fill both clusters.'
"$cede" binding apply "$here/bindings/first.yaml"
until_true 'running replicas' eval 'ready etl 3 && ready report 1'
"$cede" binding list

say 'Apply a release of priority 100, which needs two replicas on one cluster.'
"$cede" binding apply "$here/bindings/release.yaml"
until_true 'a running release' ready release 2
"$cede" binding list

say 'Show its victim, and why the victim is pending:'
"$cede" binding status release
echo
"$cede" binding status etl

say 'In the cluster eu, the release is an ordinary job:'
"$cede" job status --addr "$(http 2)"

say 'Delete the release; its victim is placed again.'
"$cede" binding delete release
until_true 'all replicas' ready etl 3
"$cede" binding list
say 'Stop everything and remove all files.'
