package bundle

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// MaxWasmSize is the maximum size of a WebAssembly module in bytes.
const MaxWasmSize = 8 << 20

// maxManifest is the maximum size of a manifest or a signature in bytes.
const maxManifest = 1 << 20

// A Bundle is a policy that was read from disk and matches its digest.
type Bundle struct {
	Manifest Manifest
	Dir      string // of the bundle; "" for a single module
	Path     string // of the module
	Origin   string // the file that errors name instead of Path; "" if Path is what users see
	Code     []byte // content of a WebAssembly module or a composition; nil for an executable
	// Executables holds the paths of the executables that a composition uses, by digest.
	Executables map[string]string

	text      []byte // of the manifest, which the signature covers
	signature *signature
}

// Named returns the name that errors give the bundle.
func (b *Bundle) Named() string { return cmp.Or(b.Origin, b.Path) }

// A NotBuiltError is returned if the module of a manifest does not exist yet.
type NotBuiltError struct {
	Dir  string // of the manifest, which may be that of a part
	Path string // of the module
}

func (e *NotBuiltError) Error() string {
	return fmt.Sprintf("%s: module is not built; run `cede policy build %s`", e.Path, e.Dir)
}

// Open reads the bundle in a directory, or a single module.
func Open(path string) (*Bundle, error) { return open(path, nil) }

// open is Open for a part of the compositions in the directories opened.
func open(path string, opened []string) (*Bundle, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return openDir(path, opened)
	}
	return openModule(path, info)
}

// ReadManifest reads only the manifest of the bundle in a directory. With an error it returns
// the valid values, as ParseManifest does, and the text.
func ReadManifest(dir string) (*Manifest, []byte, error) {
	path := filepath.Join(dir, ManifestFile)
	text, err := readLimited(path, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s is not a policy: it has no %s; run `cede policy init` to create one", dir, ManifestFile)
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := ParseManifest(path, text)
	return m, text, err
}

func openDir(dir string, opened []string) (*Bundle, error) {
	m, text, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	b := &Bundle{Manifest: *m, Dir: dir, Path: filepath.Join(dir, filepath.FromSlash(m.Module)), text: text}
	if err := b.read(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &NotBuiltError{Dir: dir, Path: b.Path}
		}
		return nil, err
	}
	if b.signature, err = readSignature(filepath.Join(dir, SignatureFile)); err != nil {
		return nil, err
	}
	b.findExecutables(opened)
	return b, nil
}

// findExecutables finds the executables that a composition uses at the paths in its
// manifest, and those of compositions that it uses. Others remain unknown: the archive
// identifies them by their digest.
func (b *Bundle) findExecutables(opened []string) {
	dir, err := filepath.Abs(b.Dir)
	if err != nil || b.Manifest.Use == nil || slices.Contains(opened, dir) {
		return
	}
	opened = append(slices.Clip(opened), dir)
	b.Executables = map[string]string{}
	for _, ref := range b.Manifest.Use.Refs() {
		path, isPath := PathOf(ref, b.Dir)
		if !isPath {
			continue
		}
		part, err := open(path, opened)
		if err != nil {
			continue
		}
		if part.Manifest.Kind == Process {
			b.Executables[part.Manifest.Digest] = part.Path
		}
		maps.Copy(b.Executables, part.Executables)
	}
}

// read reads the module. It returns an error if its digest differs from the manifest.
func (b *Bundle) read() error {
	digest, err := b.load()
	if err != nil {
		return err
	}
	if b.Manifest.Digest == "" {
		return fmt.Errorf("%s: digest is missing; run `cede policy build`, which writes it", filepath.Join(b.Dir, ManifestFile))
	}
	if digest != b.Manifest.Digest {
		return fmt.Errorf("%s does not match its manifest: digest is %s, manifest expects %s; build or download the bundle again",
			b.Path, digest, b.Manifest.Digest)
	}
	return nil
}

// load reads the module and returns its digest.
func (b *Bundle) load() (digest string, err error) {
	if b.Manifest.Kind == Process {
		return fileDigest(b.Path)
	}
	if b.Code, err = readLimited(b.Path, MaxWasmSize); err != nil {
		return "", err
	}
	return Digest(b.Code), nil
}

// Rebuild applies changes to the manifest, reads the module again and updates the digest.
// It does not write to disk.
func Rebuild(dir string, changes ...func(*Manifest)) (*Bundle, error) {
	m, text, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		change(m)
	}
	b := &Bundle{Manifest: *m, Dir: dir, Path: filepath.Join(dir, filepath.FromSlash(m.Module)), text: text}
	b.Manifest.Digest, err = b.load()
	return b, err
}

// Write writes the manifest and keeps the author's comments. If the manifest has changed,
// it removes the signature, which is invalid then. place, which may be nil, is called
// once the new manifest is on disk beside the old one, and moves the module into place. If
// place fails, or the manifest cannot be written, the old manifest and signature remain.
func (b *Bundle) Write(place func() error) error {
	if place == nil {
		place = func() error { return nil }
	}
	text, err := b.Manifest.encodeOver(b.text)
	if err != nil {
		return err
	}
	if bytes.Equal(text, b.text) {
		return place()
	}
	// A manifest may be a link to a file in another folder.
	path, err := filepath.EvalSymlinks(filepath.Join(b.Dir, ManifestFile))
	if err != nil {
		return err
	}
	fresh, err := writeBeside(path, text)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(fresh) }() // it does not exist after the rename
	if err := place(); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(b.Dir, SignatureFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return err
	}
	b.text, b.signature = text, nil
	return nil
}

// writeBeside writes a temporary file in the folder of path, with its mode, and returns its
// name. A full disk is reported here, and not after path was truncated.
func writeBeside(path string, text []byte) (name string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".policy-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// NotPolicyError is returned for a file that contains no policy.
type NotPolicyError struct{ Path, Reason string }

func (e *NotPolicyError) Error() string { return e.Path + " is not a policy: " + e.Reason }

// openModule reads a module without a manifest.
func openModule(path string, info fs.FileInfo) (*Bundle, error) {
	const shortest = 4 // the magic of WebAssembly
	head, err := readHead(path)
	if err != nil {
		return nil, err
	}
	if len(head) < shortest {
		return nil, &NotPolicyError{path, "file is too short"}
	}
	b := &Bundle{Path: path, Manifest: Manifest{
		Version: 1, Name: nameOf(path), Kind: Process, Module: filepath.Base(path),
	}}
	switch kind := kindOf(head); {
	case kind != "":
		b.Manifest.Kind = kind
	case filepath.Ext(path) == ".wasm":
		b.Manifest.Kind = Wasm
	case info.Mode()&0o111 == 0:
		return nil, &NotPolicyError{path, "neither a WebAssembly module, nor an executable, nor a directory with " + ManifestFile + ", nor a composition"}
	}
	b.Manifest.Digest, err = b.load()
	return b, err
}

// readHead returns the first bytes of a file, by which modules are recognised.
func readHead(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, 64))
}

var nonNameChars = regexp.MustCompile(`[^a-z0-9-]+`)

// nameOf derives a policy name from a file name.
func nameOf(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	name := strings.Trim(nonNameChars.ReplaceAllString(strings.ToLower(base), "-"), "-")
	if name == "" {
		return "policy"
	}
	return name[:min(len(name), 64)]
}

// Digest returns the digest of a module, sha256:HEX.
func Digest(code []byte) string {
	sum := sha256.Sum256(code)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func fileDigest(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// readLimited reads a file. It returns an error if the file is larger than most bytes.
func readLimited(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s exceeds the maximum of %d MiB", path, most>>20)
	}
	return text, nil
}
