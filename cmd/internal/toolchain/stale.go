package toolchain

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/plugins/bundle"
)

// writeTolerance is the difference of modification times that is ignored: a checkout or an
// archive writes a module and its sources in any order.
const writeTolerance = time.Second

// extensions lists the extensions of source files by language.
var extensions = map[string][]string{
	"go": {".go"}, "c": {".c", ".h"}, "rust": {".rs"}, "assemblyscript": {".ts"},
}

// Stale returns the newest source that was modified after the module was built; of rules,
// the manifest if they result in another module. It returns "" if there is none, or if the manifest does not list the sources.
func Stale(b *bundle.Bundle) string {
	if b.Dir == "" || b.Manifest.Build == nil {
		return ""
	}
	switch b.Manifest.Build.Lang {
	case bundle.Rules:
		return rulesStale(b)
	case bundle.Uses:
		return compositionStale(b)
	}
	module, err := os.Stat(b.Path)
	if err != nil {
		return ""
	}
	newest, file := module.ModTime().Add(writeTolerance), ""
	walkSources(b.Dir, b.Manifest.Build.Lang, func(path string, d fs.DirEntry) {
		if info, err := d.Info(); err == nil && info.ModTime().After(newest) {
			newest, file = info.ModTime(), path
		}
	})
	return file
}

// walkSources calls visit with each source file in the folder of a policy.
func walkSources(dir, lang string, visit func(path string, d fs.DirEntry)) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // the compiler reports unreadable files
		case d.IsDir() && path != dir && isIgnoredDir(d.Name()):
			return fs.SkipDir
		case !d.IsDir() && isSource(lang, d.Name()):
			visit(path, d)
		}
		return nil
	})
}

// Files returns the files of a policy that builds and servers read: the file at path, or those
// of the folder at path and of the policies that it names. Of a path that does not exist there
// are none.
func Files(path string) []string { return filesOf(path, map[string]bool{}) }

// filesOf is Files without the paths in seen, because folders may name each other.
func filesOf(path string, seen map[string]bool) (files []string) {
	info, err := os.Stat(path)
	if err != nil || seen[path] {
		return nil
	}
	seen[path] = true
	if !info.IsDir() {
		return []string{path}
	}
	m, _, _ := bundle.ReadManifest(path) // its valid values
	if m == nil {
		return nil
	}
	for _, name := range []string{bundle.ManifestFile, bundle.SignatureFile, m.Module} {
		files = append(files, filepath.Join(path, filepath.FromSlash(name)))
	}
	if m.Build != nil {
		walkSources(path, m.Build.Lang, func(source string, _ fs.DirEntry) { files = append(files, source) })
	}
	if m.Use != nil {
		for _, ref := range m.Use.Refs() {
			if part, ok := bundle.PathOf(ref, path); ok {
				files = append(files, filesOf(part, seen)...)
			}
		}
	}
	return files
}

// isIgnoredDir reports whether a folder contains no sources of the policy.
func isIgnoredDir(name string) bool {
	return strings.HasPrefix(name, ".") || slices.Contains([]string{"node_modules", "target", "testdata"}, name)
}

func isSource(lang, name string) bool {
	return slices.Contains(extensions[lang], filepath.Ext(name)) && !strings.HasSuffix(name, "_test.go")
}
