#!/usr/bin/env bash
# Builds the guests that tests load, from their sources in sdk/c, sdk/rust and
# sdk/assemblyscript, into this folder or FOLDER:
#
#   build.sh [-o FOLDER | -v | -s] [c] [rust] [assemblyscript]
#
# Builds are reproducible. `versions` holds the versions of the tools and the digests
# of the sources of the committed modules. -v prints the versions of the installed
# tools, -s the digests of the sources. Without a language it builds all languages;
# GUESTS=decay builds the guest decay only. It exits with 3 if a tool is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
sdk=$(cd "$here/../../.." && pwd)
asc=$sdk/assemblyscript/node_modules/.bin/asc
out=$here
action=build
case ${1:-} in
  -o)
    out=$(cd "$2" && pwd)
    shift 2
    ;;
  -v)
    action=version
    shift
    ;;
  -s)
    action=sources
    shift
    ;;
esac
whole=$#
only=${GUESTS:-*}
[ $# -gt 0 ] || set -- c rust assemblyscript

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

missing() {
  echo "build.sh: $1 is missing: $2" >&2
  exit 3
}

# link OBJECT... -o MODULE: small stacks that overflow into a trap, no names.
link() { wasm-ld --no-entry --strip-all --stack-first -z stack-size=16384 "$@"; }

# sources LANGUAGE: a digest of all sources of a language's modules.
sources() {
  cd "$sdk/$1"
  printf 'sources of %s: ' "$1"
  find . -name node_modules -prune -o -name target -prune -o -type f ! -name '*.md' ! -name '.*' -print | LC_ALL=C sort |
    xargs sha256sum | cat - "$here/build.sh" | sha256sum | cut -c1-32
}
sources_c() { (sources c); }
sources_rust() { (sources rust); }
sources_assemblyscript() { (sources assemblyscript); }

# require_LANGUAGE exits with 3 if a tool of the language is missing.
require_c() {
  command -v clang >/dev/null || missing clang 'apt-get install clang lld'
  command -v wasm-ld >/dev/null || missing wasm-ld 'apt-get install lld'
}
require_rust() {
  command -v wasm-ld >/dev/null || missing wasm-ld 'apt-get install lld'
  rust >/dev/null
}
require_assemblyscript() {
  command -v node >/dev/null || missing node 'apt-get install nodejs npm'
  [ -x "$asc" ] || missing 'the compiler of AssemblyScript' '(cd sdk/assemblyscript && npm ci)'
}

version_c() { echo "c: $(clang --version | sed -n 1p), $(wasm-ld --version)"; }
version_rust() { echo "rust: $("$(rust)" --version), $(wasm-ld --version)"; }
version_assemblyscript() { echo "assemblyscript: $("$asc" --version)"; }

build_c() {
  local source name
  for source in "$sdk"/c/examples/$only.c "$sdk"/c/test/$only.c; do
    [ -f "$source" ] || continue
    name=$(basename "$source" .c)
    # Two steps, since clang runs any installed wasm-opt when it links.
    (cd "$(dirname "$source")" && clang --target=wasm32 -std=c11 -O3 -ffreestanding -mbulk-memory -msign-ext \
      -mnontrapping-fptoint -Wall -Wextra -Werror -Wno-missing-field-initializers -c "$name.c" -o "$work/$name.o")
    link "$work/$name.o" -o "$out/$name-c.wasm"
  done
}

# rust prints a compiler that has the standard library for wasm32: that of the
# distribution may have it if another one is first in PATH.
rust() {
  local compiler
  for compiler in ${RUSTC:-} /usr/bin/rustc rustc; do
    command -v "$compiler" >/dev/null || continue
    [ -d "$("$compiler" --print sysroot)/lib/rustlib/wasm32-unknown-unknown/lib" ] || continue
    echo "$compiler"
    return
  done
  missing 'rustc for wasm32' 'apt-get install rustc libstd-rust-dev-wasm32'
}

build_rust() {
  local compiler name crate
  compiler=$(rust)
  local flags=(--edition 2021 --target wasm32-unknown-unknown -C opt-level=3 -C panic=abort -C codegen-units=1
    -C target-feature=+bulk-memory,+nontrapping-fptoint -C linker=wasm-ld -C strip=symbols
    -C link-arg=-zstack-size=16384 -C link-arg=--stack-first)
  flags+=("--remap-path-prefix=$sdk/rust=cede") # no paths of this machine
  cd "$sdk/rust"
  "$compiler" "${flags[@]}" -D warnings --crate-name cede --crate-type rlib src/lib.rs --out-dir "$work"
  for crate in examples/$only tests/$only; do
    [ -d "$crate" ] || continue
    name=$(basename "$crate")
    "$compiler" "${flags[@]}" -D warnings -C lto=fat --crate-name "$name" --crate-type cdylib "$crate/src/lib.rs" \
      --extern cede="$work/libcede.rlib" -o "$out/$name-rust.wasm"
  done
}

build_assemblyscript() {
  local name program
  cd "$sdk/assemblyscript"
  for program in examples/$only tests/$only; do
    [ -d "$program" ] || continue
    name=$(basename "$program")
    "$asc" "$program/index.ts" --config asconfig.json -o "$out/$name-assemblyscript.wasm" 2>"$work/words" ||
      { cat "$work/words" >&2; exit 1; }
  done
}

for language; do
  [ "$action" = sources ] || "require_$language"
  "${action}_$language"
done
if [ "$action" = build ] && [ "$out" = "$here" ] && [ "$whole" = 0 ] && [ "$only" = '*' ]; then
  for language; do "version_$language" && "sources_$language"; done >"$here/versions"
fi
