package wasm

// The hostile guests of the tests are written in WebAssembly text format.
//
//go:generate sh -c "cd testdata/hostile && for f in *.wat; do wat2wasm $f -o ${f%.wat}.wasm || exit 1; done"
