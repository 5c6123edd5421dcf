package toolchain

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

const installNode = "install Node.js: apt-get install nodejs npm"

// assemblyScriptModule compiles with the compiler in the project's node_modules
// directory.
func assemblyScriptModule(ctx context.Context, p *Project, out string) error {
	if _, err := find(installNode, "node"); err != nil {
		return err
	}
	compiler, err := filepath.Abs(filepath.Join(p.Dir, "node_modules", ".bin", "asc"))
	if err != nil {
		return err
	}
	if _, err := os.Stat(compiler); err != nil {
		return &MissingError{
			Tool:    "asc, the compiler of AssemblyScript,",
			Install: fmt.Sprintf("run npm install in %s to download the version of its package.json", p.Dir),
		}
	}
	config := filepath.FromSlash("third_party/cede/sdk/assemblyscript/asconfig.json")
	// --debug keeps the names of functions, which faults show.
	return p.run(ctx, nil, compiler, p.source(), "--config", config, "--debug", "-o", out)
}
