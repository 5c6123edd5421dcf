package toolchain

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	rustTarget  = "wasm32-unknown-unknown"
	installRust = "install rustc with its library for wasm32: apt-get install rustc libstd-rust-dev-wasm32, or rustup target add " + rustTarget
)

// rustModule compiles the guest library and the policy against it.
func rustModule(ctx context.Context, p *Project, out string) error {
	compiler, err := p.rustc(ctx)
	if err != nil {
		return err
	}
	linker, err := find(installLLD, "wasm-ld", "wasm-ld-19", "wasm-ld-18", "wasm-ld-17", "wasm-ld-16", "wasm-ld-15", "wasm-ld-14")
	if err != nil {
		return err
	}
	library := filepath.Join(filepath.Dir(out), "libcede.rlib")
	root, err := filepath.Abs(p.Dir)
	if err != nil {
		return err
	}
	flags := []string{
		"--edition", "2021", "--target", rustTarget, "-C", "opt-level=3", "-C", "panic=abort", "-C", "codegen-units=1",
		"-C", "target-feature=+bulk-memory,+nontrapping-fptoint", "-C", "linker=" + linker, "-C", "debuginfo=1", "--remap-path-prefix=" + root + "=.",
		"-C", "link-arg=-zstack-size=16384", "-C", "link-arg=--stack-first",
	}
	source := filepath.FromSlash("third_party/cede/sdk/rust/src/lib.rs")
	err = p.run(ctx, nil, compiler, append([]string{source, "--crate-name", "cede", "--crate-type", "rlib", "-o", library}, flags...)...)
	if err != nil {
		return err
	}
	err = p.run(ctx, nil, compiler, append([]string{
		p.source(), "--crate-name", "policy", "--crate-type", "cdylib", "-C", "lto=fat", "--extern", "cede=" + library, "-o", out,
	}, flags...)...)
	if err != nil {
		return err
	}
	return stripDebug(out)
}

// rustc returns a compiler that has the standard library for wasm32. The first one on
// PATH often lacks it, while that of the distribution has it.
func (p *Project) rustc(ctx context.Context) (string, error) {
	for _, name := range []string{p.getenv("RUSTC"), "rustc", "/usr/bin/rustc"} {
		path, err := exec.LookPath(name)
		if name == "" || err != nil {
			continue
		}
		root, err := exec.CommandContext(ctx, path, "--print", "sysroot").Output()
		if err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(strings.TrimSpace(string(root)), "lib", "rustlib", rustTarget, "lib")); err == nil {
			return path, nil
		}
	}
	return "", &MissingError{Tool: "rustc for " + rustTarget, Install: installRust}
}
