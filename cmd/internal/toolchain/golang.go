package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const installGo = "install Go 1.26 or newer from https://go.dev/dl, or with apt-get install golang-go if it is new enough"

// ProcessModules lists the Go modules that a process requires in addition to the SDK, with
// the versions of this build.
var ProcessModules = []string{
	"github.com/hashicorp/go-hclog v1.6.3",
	"github.com/hashicorp/go-plugin v1.8.0",
	"google.golang.org/grpc v1.85.0",
	"google.golang.org/protobuf v1.36.12",
}

// processMod is the separate go.mod of the process build, so that the module build
// requires no downloads.
const processMod = "process.mod"

// common are the flags of every Go build. They omit paths, dates and commits, so that
// the same sources produce the same bytes.
var common = []string{"-trimpath", "-buildvcs=false"}

// goModule builds a WebAssembly module.
func goModule(ctx context.Context, p *Project, out string) error {
	tool, err := find(installGo, "go")
	if err != nil {
		return err
	}
	args := append([]string{"build"}, common...)
	args = append(args, "-buildmode=c-shared", "-ldflags=-s -w -buildid=", "-o", out, p.goPackage())
	return p.run(ctx, p.goEnvironment("GOOS=wasip1", "GOARCH=wasm"), tool, args...)
}

// goProcess builds an executable.
func goProcess(ctx context.Context, p *Project, out string) error {
	tool, err := find(installGo, "go")
	if err != nil {
		return err
	}
	if err := p.writeProcessMod(); err != nil {
		return err
	}
	p.say(fmt.Sprintf("a process requires go-plugin: its Go modules are listed in %s and downloaded if missing",
		filepath.Join(p.Dir, processMod)))
	args := append([]string{"build"}, common...)
	args = append(args, "-mod=mod", "-modfile="+processMod, "-tags=process", "-ldflags=-s -w -buildid=", "-o", out, p.goPackage())
	return p.run(ctx, p.goEnvironment("CGO_ENABLED=0"), tool, args...)
}

// writeProcessMod writes the requirements of the project and of a process. The go
// tool adds transitive requirements and checksums.
func (p *Project) writeProcessMod() error {
	text, err := os.ReadFile(filepath.Join(p.Dir, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no go.mod, which a process requires; `cede policy init` writes one", p.Dir)
	}
	if err != nil {
		return err
	}
	fresh := fmt.Sprintf("// Written by cede policy build --kind process: go.mod and the requirements of a process.\n%s\nrequire (\n\t%s\n)\n",
		text, strings.Join(ProcessModules, "\n\t"))
	return os.WriteFile(filepath.Join(p.Dir, processMod), []byte(fresh), 0o666)
}

// goPackage returns the package to build in the syntax of the go tool.
func (p *Project) goPackage() string {
	return "." + string(filepath.Separator) + filepath.Clean(p.source())
}

// goEnvironment returns the environment of the go tool. It disables a workspace
// around the project, unless the user set GOWORK.
func (p *Project) goEnvironment(more ...string) []string {
	if p.getenv("GOWORK") == "" {
		more = append(more, "GOWORK=off")
	}
	return more
}
