#!/bin/sh
# Writes replication.pb.go into the given folder. protoc is Debian's
# protobuf-compiler; the Go generator is pinned here.
set -eu
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"

command -v protoc >/dev/null || {
  echo 'replicationpb: protoc is not installed: apt-get install protobuf-compiler' >&2
  exit 1
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# protoc requires generators to be files.
printf '#!/bin/sh\nexec go run google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12 "$@"\n' >"$tmp/protoc-gen-go"
chmod +x "$tmp/protoc-gen-go"

protoc --plugin="$tmp/protoc-gen-go" --go_out="$out" --go_opt=paths=source_relative replication.proto
