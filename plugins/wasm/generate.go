package wasm

// The hostile guests of the tests are written in WebAssembly text format.
//
//go:generate sh -c "cd testdata/hostile && for f in *.wat; do wat2wasm $f -o ${f%.wat}.wasm || exit 1; done"

// The guest that traps has a line table of each version that compilers emit.
//
//go:generate sh -c "cd testdata/trap && for v in 2 4 5; do clang -c policy.c -o policy.o --target=wasm32 -O2 -ffreestanding -mbulk-memory -gline-tables-only -gdwarf-$v && wasm-ld policy.o -o v$v.wasm --no-entry --stack-first -z stack-size=16384; done; rm policy.o"
