package toolchain

import (
	"context"
	"path/filepath"
)

const (
	installClang = "install clang and lld: apt-get install clang lld"
	installLLD   = "install lld: apt-get install lld"
)

// linking are the flags of wasm-ld: a small stack placed first, so that an overflow
// traps instead of corrupting data. Names of functions and line tables remain, because errors
// contain them.
var linking = []string{"--no-entry", "--stack-first", "-z", "stack-size=16384"}

// cModule compiles and links in two steps: if clang drives the linker, it runs the
// installed wasm-opt and fails with old versions.
func cModule(ctx context.Context, p *Project, out string) error {
	clang, err := find(installClang, "clang", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14")
	if err != nil {
		return err
	}
	linker, err := find(installLLD, "wasm-ld", "wasm-ld-19", "wasm-ld-18", "wasm-ld-17", "wasm-ld-16", "wasm-ld-15", "wasm-ld-14")
	if err != nil {
		return err
	}
	object := filepath.Join(filepath.Dir(out), "policy.o")
	err = p.run(ctx, nil, clang, "-c", p.source(), "-o", object, "-I", filepath.FromSlash("third_party/cede/sdk/c"),
		"--target=wasm32", "-std=c11", "-O3", "-ffreestanding", "-mbulk-memory", "-msign-ext", "-mnontrapping-fptoint",
		"-gline-tables-only", "-gdwarf-4", "-Wall", "-Wextra", "-Wno-missing-field-initializers")
	if err != nil {
		return err
	}
	if err := p.run(ctx, nil, linker, append([]string{object, "-o", out}, linking...)...); err != nil {
		return err
	}
	return stripDebug(out)
}
