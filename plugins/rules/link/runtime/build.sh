#!/usr/bin/env bash
# Compiles runtime.c to runtime.wasm, or to FILE: build.sh [FILE]. The same tools produce
# the same bytes. It exits with 3 if a tool is missing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(realpath -m "${1:-$here/runtime.wasm}")
for tool in clang wasm-ld; do
  command -v "$tool" >/dev/null || { echo "build.sh: $tool is missing: apt-get install clang lld" >&2; exit 3; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$here"
clang -c runtime.c -o "$work/runtime.o" -I ../../../../sdk/c --target=wasm32 -std=c11 -O3 -ffreestanding \
  -mbulk-memory -msign-ext -mnontrapping-fptoint -Wall -Wextra -Werror -Wno-missing-field-initializers -Wno-unused-function
# Data begins at the stack's upper end. The runtime has no recursion and uses less than a
# kilobyte of the stack, so package link writes the rules into its lower half.
wasm-ld "$work/runtime.o" -o "$out" --no-entry --strip-all --stack-first -z stack-size=32768
[ $# -gt 0 ] || clang --version | sed -n 1p >"$here/version"
chmod 644 "$out"
