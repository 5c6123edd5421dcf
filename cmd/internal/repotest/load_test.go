package repotest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/cede-scheduler/cede"

// root is the repository's top folder, relative to this package.
const root = "../../.."

// listed is a package as `go list` reports it.
type listed struct {
	ImportPath, Name, Export                 string
	GoFiles, CgoFiles, IgnoredGoFiles        []string
	TestGoFiles, XTestGoFiles                []string
	Imports, TestImports, XTestImports, Deps []string
	Standard, Incomplete                     bool

	rel string // path below the module, if the package belongs to it
}

var loadHost = sync.OnceValues(func() ([]listed, error) { return goList() })

// modulePackages returns the packages of this module as built on this machine.
func modulePackages(t *testing.T) []listed {
	t.Helper()
	packages, err := loadHost()
	if err != nil {
		t.Fatal(err)
	}
	var mine []listed
	for _, p := range packages {
		if _, ok := relative(p.ImportPath); ok {
			mine = append(mine, p)
		}
	}
	if len(mine) == 0 {
		t.Fatal("go list found no package of this module: the checks have no subject")
	}
	return mine
}

// load returns this module's packages and their dependencies, in an environment such
// as GOOS=wasip1.
func load(t *testing.T, env ...string) []listed {
	t.Helper()
	packages, err := goList(env...)
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// goList tolerates packages that do not compile, because the compiler reports them.
func goList(env ...string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-e", "-deps",
		"-json=ImportPath,Name,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Deps,Standard,Incomplete", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env...)
	return decodeList(cmd)
}

func decodeList(cmd *exec.Cmd) ([]listed, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(err, errors.New(stderr.String()))
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		p.rel, _ = relative(p.ImportPath)
		packages = append(packages, p)
	}
}

// relative returns the path of a package below the module, if it belongs to it.
func relative(importPath string) (string, bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// files returns the repository's files with one of the suffixes, as paths below
// root. It skips hidden folders, build output and test data.
func files(t *testing.T, suffixes ...string) []string {
	t.Helper()
	return filesBut(t, []string{"testdata"}, suffixes...)
}

// filesBut is files without the folders of some names instead of testdata.
func filesBut(t *testing.T, names []string, suffixes ...string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if entry.IsDir() {
			skip := rel == "bin" || rel == "bench" || slices.Contains(names, entry.Name()) || entry.Name() == "node_modules" ||
				(rel != "." && strings.HasPrefix(entry.Name(), "."))
			if skip {
				return filepath.SkipDir
			}
			return nil
		}
		if slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(rel, s) }) {
			found = append(found, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func read(t *testing.T, rel string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, rel))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
