package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/sdk"
)

//go:embed templates
var templates embed.FS // read-only

// sdkFolder is the folder of the SDK in a project, as in this repository.
const sdkFolder = "third_party/cede"

// Project is a policy to generate.
type Project struct {
	Name string
	Lang string
}

// File is one file of a project. Name is relative to the project's directory, with
// slashes.
type File struct {
	Name string
	Text []byte
	SDK  bool // part of the SDK
}

var nameForm = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,62}[a-z0-9])?$`)

// CheckName returns an error if name is not a valid name of a policy.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("invalid policy name %q: expected at most 64 lower-case letters, digits and dashes, starting with a letter", name)
	}
	return nil
}

// Files returns the files of the project.
func (p Project) Files() ([]File, error) {
	var list []File
	for _, root := range []string{"templates/all", "templates/" + p.Lang} {
		err := fs.WalkDir(templates, root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := p.expand(name)
			f := File{Name: p.target(strings.TrimPrefix(name, root+"/")), Text: text}
			list = slices.DeleteFunc(list, func(other File) bool { return other.Name == f.Name }) // of all languages
			list = append(list, f)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	list = append(list, p.sdk()...)
	slices.SortStableFunc(list, func(a, b File) int {
		if a.SDK != b.SDK {
			if a.SDK {
				return 1
			}
			return -1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list, nil
}

// target returns the file name for a template. Templates of Go files have another
// extension, so that the go tool ignores them; a leading dot is written as dot-.
func (p Project) target(name string) string {
	name = strings.TrimSuffix(name, ".tmpl")
	dir, base := path.Split(name)
	if rest, ok := strings.CutPrefix(base, "dot-"); ok {
		base = "." + rest
	}
	return dir + strings.ReplaceAll(base, "NAME", p.Name)
}

func (p Project) expand(name string) ([]byte, error) {
	text, err := templates.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t, err := template.New(name).Delims("{%", "%}").Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, p)
	return b.Bytes(), err
}

// Ident returns the name as an identifier, with dashes replaced by underscores.
func (p Project) Ident() string { return strings.ReplaceAll(p.Name, "-", "_") }

// Source returns the file that the author edits.
func (p Project) Source() string {
	return map[string]string{"go": "policy.go", "rust": "src/lib.rs", "assemblyscript": "assembly/index.ts", "c": "policy.c", bundle.Rules: bundle.ManifestFile}[p.Lang]
}

// sdk returns the files of the SDK. Rules need none.
func (p Project) sdk() []File {
	var list []File
	if p.Lang == bundle.Rules {
		return nil
	}
	add := func(name string, text []byte) {
		list = append(list, File{Name: path.Join(sdkFolder, name), Text: text, SDK: true})
	}
	for _, name := range sdk.Files(p.Lang) {
		at := path.Join("sdk", name)
		if name == "LICENSE" {
			at = name
		}
		add(at, sdk.Read(name))
	}
	if p.Lang == "go" {
		// No requirements: the code for processes, which has dependencies, is behind
		// a build tag.
		add("go.mod", []byte("module github.com/cede-scheduler/cede\n\ngo 1.26\n"))
	}
	return list
}

// ErrNotEmpty is returned if the directory is not empty.
var ErrNotEmpty = errors.New("the folder is not empty")

// Write creates the directory and writes the files. If it fails, it removes the files
// that it wrote.
func Write(dir string, files []File) (err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, 0o777); err != nil { // subject to the umask
			return err
		}
		defer func() {
			if err != nil {
				_ = os.Remove(dir) // the first error is returned
			}
		}()
	case err != nil:
		return err
	case len(entries) > 0:
		return ErrNotEmpty
	}
	defer func() {
		if err != nil {
			removeAll(dir)
		}
	}()
	for _, f := range files {
		if err := write(filepath.Join(dir, filepath.FromSlash(f.Name)), f.Text); err != nil {
			return err
		}
	}
	return nil
}

// removeAll removes the content of a directory that was empty before.
func removeAll(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		_ = os.RemoveAll(filepath.Join(dir, e.Name())) // if removal fails, the file remains
	}
}

func write(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
