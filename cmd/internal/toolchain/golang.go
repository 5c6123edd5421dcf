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

// The process build has a go.mod of its own, so that the other one needs nothing
// that has to be fetched.
const processMod = "process.mod"

// common are flags of every build with Go: no paths, dates or commits, so that
// the same sources give the same bytes.
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

// goPackage is the package to build, as the go tool wants it.
func (p *Project) goPackage() string {
	return "." + string(filepath.Separator) + filepath.Clean(p.source())
}

// goEnvironment is a go tool that is not led astray by a workspace around the
// project, unless the user named one.
func (p *Project) goEnvironment(more ...string) []string {
	if p.getenv("GOWORK") == "" {
		more = append(more, "GOWORK=off")
	}
	return more
}
