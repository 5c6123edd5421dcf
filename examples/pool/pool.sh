#!/usr/bin/env bash
# Runs three servers and ten nodes on loopback, and kills the leader while jobs arrive.
# The script ends every process that it started, by its process ID.
set -euo pipefail
cede=${1:-bin/cede}
base=${POOL_PORT:-14600}

# Checked before anything is started: ports base+1 to base+50.
refuse() { echo "POOL_PORT=$base: $*" >&2; exit 2; }
case $base in
  *[!0-9]* | ??????*) refuse 'must be a port such as 14600; the next 50 must be free' ;;
esac
base=$((10#$base))
if [ "$base" -lt 1024 ] || [ "$base" -gt 65485 ]; then refuse 'must be between 1024 and 65485'; fi
for p in 1 2 3 11 12 13 21 22 23 41 42 43 44 45 46 47 48 49 50; do
  if (exec 3<>"/dev/tcp/127.0.0.1/$((base + p))") 2>/dev/null; then
    refuse "port $((base + p)) is in use; set POOL_PORT to a port with 50 free ports after it"
  fi
done

dir=$(mktemp -d)
declare -A pid=()

finish() {
  code=$?
  trap - EXIT INT TERM
  { # hides the messages of the shell about killed processes
    for p in "${pid[@]}"; do kill -KILL "$p" || true; done
    wait || true
  } 2>/dev/null
  if [ $code -ne 0 ]; then
    printf '\nThe script failed. Last lines of the logs:\n' >&2
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
      echo "timeout after one minute: $what" >&2
      exit 1
    fi
    sleep 0.1
  done
}

# Prints the name of the leader.
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

say 'Start three servers, which wait for each other, and ten nodes.'
for i in 1 2 3; do server $i; done
until_true 'a leader' leading
for i in $(seq 10); do node "$i"; done
until_true 'ten ready nodes' ready_nodes
"$cede" server members
"$cede" node list

say 'Submit jobs.'
for i in 1 2 3 4 5; do job "before-$i" >"$dir/before-$i.yaml"; submit "before-$i"; done
until_true 'a running job' runs before-5
"$cede" job status

leader=$(leading)
say "$leader is the leader. Kill its process, ${pid[$leader]}, and submit more jobs."
kill -KILL "${pid[$leader]}"
wait "${pid[$leader]}" 2>/dev/null || true
from=$(date +%s%N)
for i in 1 2 3 4 5; do job "after-$i" >"$dir/after-$i.yaml"; done
until_true 'an accepted job' submit after-1
printf 'The next job was accepted after %d ms.\n\n' $((($(date +%s%N) - from) / 1000000))
for i in 2 3 4 5; do submit "after-$i"; done
for i in 1 2 3 4 5; do until_true 'a running job' runs "after-$i"; done
until_true 'a failed member' missed
"$cede" server members
"$cede" job status

say "Restart $leader; it catches up."
server "${leader#s}"
same() {
  local first=''
  for i in 1 2 3; do
    hash=$("$cede" operator raft --addr "$(http $i)" -t '{{.StateHash}}') || return 1
    [ -n "$hash" ] && [ "${first:=$hash}" = "$hash" ] || return 1
  done
}
until_true 'equal states' same
"$cede" operator raft
say 'The three servers have the same state hash. Stop everything and remove all files.'
