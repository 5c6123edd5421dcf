#!/bin/sh
# Writes policy.pb.go and policy_grpc.pb.go into the folder given. protoc is
# Debian's protobuf-compiler; the Go generators are pinned here.
set -eu
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"

command -v protoc >/dev/null || {
  echo 'policypb: protoc is not installed: apt-get install protobuf-compiler' >&2
  exit 1
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# protoc requires generators that are files.
generator() {
  printf '#!/bin/sh\nexec go run %s "$@"\n' "$2" >"$tmp/$1"
  chmod +x "$tmp/$1"
}
generator protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
generator protoc-gen-go-grpc google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2

protoc --plugin="$tmp/protoc-gen-go" --plugin="$tmp/protoc-gen-go-grpc" \
  --go_out="$out" --go_opt=paths=source_relative \
  --go-grpc_out="$out" --go-grpc_opt=paths=source_relative policy.proto
