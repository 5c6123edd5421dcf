#!/usr/bin/env bash
# Three servers and ten nodes on loopback. The server that leads is killed while jobs
# come in; work goes on. Everything that it starts it ends, by its process id.
set -euo pipefail
cede=${1:-bin/cede}
base=${POOL_PORT:-14600}

# Checked before anything is started: ports base+1 to base+50.
refuse() { echo "POOL_PORT=$base: $*" >&2; exit 2; }
case $base in
  *[!0-9]* | ??????*) refuse 'want the number of a port, such as 14600, of which the next 50 are free' ;;
esac
base=$((10#$base))
if [ "$base" -lt 1024 ] || [ "$base" -gt 65485 ]; then refuse 'want a number from 1024 to 65485'; fi
for p in 1 2 3 11 12 13 21 22 23 41 42 43 44 45 46 47 48 49 50; do
  if (exec 3<>"/dev/tcp/127.0.0.1/$((base + p))") 2>/dev/null; then
    refuse "port $((base + p)) is taken; set POOL_PORT to where the next 50 are free"
  fi
done

dir=$(mktemp -d)
declare -A pid=()

finish() {
  code=$?
  trap - EXIT INT TERM
  { # the shell tells of each that was killed, when it pleases
    for p in "${pid[@]}"; do kill -KILL "$p" || true; done
    wait || true
  } 2>/dev/null
  if [ $code -ne 0 ]; then
    printf '\nIt did not go well. What the servers said last:\n' >&2
    tail -n 5 "$dir"/s?.log >&2 || true
  fi
  rm -rf "$dir"
  exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM

say() { printf '\n== %s\n\n' "$*"; }
http() { echo "http://127.0.0.1:$((base + $1))"; }
all="$(http 1),$(http 2),$(http 3)"
export CEDE_ADDR=$all

server() { # number
  cat >"$dir/s$1.yaml" <<YAML
name: s$1
data_dir: $dir/s$1
listen: {http: "127.0.0.1:$((base + $1))", rpc: "127.0.0.1:$((base + 10 + $1))", gossip: "127.0.0.1:$((base + 20 + $1))", metrics: ""}
server: {enabled: true, bootstrap_expect: 3, join: ["127.0.0.1:$((base + 21))", "127.0.0.1:$((base + 22))", "127.0.0.1:$((base + 23))"]}
YAML
  "$cede" agent --config "$dir/s$1.yaml" 2>>"$dir/s$1.log" >/dev/null &
  pid[s$1]=$!
}

node() { # number
  cat >"$dir/n$1.yaml" <<YAML
name: n$1
data_dir: $dir/n$1
listen: {http: "127.0.0.1:$((base + 40 + $1))", metrics: ""}
client:
  enabled: true
  servers: ["${all//,/\", \"}"]
  resources: {cpu: 4000, memory: 8192, disk: 10000}
  drivers: {sim: {enabled: true}, exec: {enabled: false}}
  pressure: {enabled: false}
YAML
  "$cede" agent --config "$dir/n$1.yaml" 2>>"$dir/n$1.log" >/dev/null &
  pid[n$1]=$!
}

job() { # name
  cat <<YAML
id: $1
priority: 50
groups:
  - name: g
    count: 2
    tasks: [{name: main, driver: sim, resources: {cpu: 100, memory: 64}}]
YAML
}

until_true() { # what, command...
  local what=$1 end=$((SECONDS + 60))
  shift
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $end ]; then
      echo "not within a minute: $what" >&2
      exit 1
    fi
    sleep 0.1
  done
}

# The server that says of itself that it leads.
leading() {
  for i in 1 2 3; do
    if [ "$("$cede" operator raft --addr "$(http $i)" -t '{{.State}}' 2>/dev/null)" = Leader ]; then
      echo "s$i"
      return
    fi
  done
  return 1
}

ready_nodes() { [ "$("$cede" node list -t '{{range .}}{{if eq .Status "ready"}}x{{end}}{{end}}')" = "xxxxxxxxxx" ]; }
submit() { "$cede" job run "$dir/$1.yaml" >/dev/null; }
missed() { "$cede" server members | grep -q failed; }
runs() { [ "$("$cede" job status "$1" -t '{{range .Allocations}}{{if eq .ClientStatus "running"}}x{{end}}{{end}}')" = xx ]; }

say 'Three servers start; two would wait for the third. Ten nodes join them.'
for i in 1 2 3; do server $i; done
until_true 'a server leads' leading
for i in $(seq 10); do node "$i"; done
until_true 'ten nodes are ready' ready_nodes
"$cede" server members
"$cede" node list

say 'Jobs come in.'
for i in 1 2 3 4 5; do job "before-$i" >"$dir/before-$i.yaml"; submit "before-$i"; done
until_true 'a job runs' runs before-5
"$cede" job status

leader=$(leading)
say "$leader leads. Its process, ${pid[$leader]}, is killed; jobs go on coming in."
kill -KILL "${pid[$leader]}"
wait "${pid[$leader]}" 2>/dev/null || true
from=$(date +%s%N)
for i in 1 2 3 4 5; do job "after-$i" >"$dir/after-$i.yaml"; done
until_true 'a job is taken again' submit after-1
printf 'The next job was taken after %d ms.\n\n' $((($(date +%s%N) - from) / 1000000))
for i in 2 3 4 5; do submit "after-$i"; done
for i in 1 2 3 4 5; do until_true 'a job runs' runs "after-$i"; done
until_true 'the pool misses the server' missed
"$cede" server members
"$cede" job status

say "$leader starts again and catches up."
server "${leader#s}"
same() {
  local first=''
  for i in 1 2 3; do
    hash=$("$cede" operator raft --addr "$(http $i)" -t '{{.StateHash}}') || return 1
    [ -n "$hash" ] && [ "${first:=$hash}" = "$hash" ] || return 1
  done
}
until_true 'the servers have the same state' same
"$cede" operator raft
say 'The three have the same state, to the bit. All is stopped and removed.'
