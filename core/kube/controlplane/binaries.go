package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Kubernetes is the module that contains the programs of the control plane.
const Kubernetes = "k8s.io/kubernetes"

// programs are the programs of a control plane and their packages.
var programs = map[string]string{
	"etcd":                    "go.etcd.io/etcd/server/v3",
	"kube-apiserver":          Kubernetes + "/cmd/kube-apiserver",
	"kube-controller-manager": Kubernetes + "/cmd/kube-controller-manager",
	"kube-scheduler":          Kubernetes + "/cmd/kube-scheduler",
}

// ErrNotBuilt means that a program is missing in the cache.
var ErrNotBuilt = errors.New("the programs of Kubernetes are not built: run make test-kubernetes, which takes about 15 minutes once on two cores")

// Binaries are the programs of a control plane.
type Binaries struct {
	Dir     string
	Version string // of Kubernetes, for example v1.37.2
}

// Find returns the programs of the pinned version. The error is ErrNotBuilt if one is
// missing. The folder is $CEDE_KUBERNETES_BIN, by default one for each version below the
// user's cache folder.
func Find(ctx context.Context) (Binaries, error) {
	version, err := output(ctx, "go", "list", "-m", "-f", "{{.Version}}", Kubernetes)
	if err != nil {
		return Binaries{}, err
	}
	b := Binaries{Dir: os.Getenv("CEDE_KUBERNETES_BIN"), Version: version}
	if b.Dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return b, err
		}
		b.Dir = filepath.Join(cache, "cede", "kubernetes", version)
	}
	for name := range programs {
		if _, err := os.Stat(b.Path(name)); errors.Is(err, fs.ErrNotExist) {
			return b, fmt.Errorf("%w (%s)", ErrNotBuilt, b.Path(name))
		} else if err != nil {
			return b, err
		}
	}
	return b, nil
}

// Path returns the path of a program.
func (b Binaries) Path(name string) string { return filepath.Join(b.Dir, name) }

// Build builds the missing programs into the cache. The output of the compiler goes to w.
func (b Binaries) Build(ctx context.Context, w io.Writer) error {
	if err := os.MkdirAll(b.Dir, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		if _, err := os.Stat(b.Path(name)); err == nil {
			continue
		}
		part := b.Path(name) + ".part" // an interrupted build must not count as a program
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w -X k8s.io/component-base/version.gitVersion="+b.Version, "-o", part, programs[name])
		cmd.Stdout, cmd.Stderr = w, w
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
		if err := os.Rename(part, b.Path(name)); err != nil {
			return err
		}
	}
	return nil
}

// output returns the trimmed standard output of a command.
func output(ctx context.Context, name string, args ...string) (string, error) {
	text, err := exec.CommandContext(ctx, name, args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}
