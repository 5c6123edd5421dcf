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
	_ = filepath.WalkDir(b.Dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // the compiler reports unreadable files
		case d.IsDir() && path != b.Dir && isIgnoredDir(d.Name()):
			return fs.SkipDir
		case d.IsDir() || !isSource(b.Manifest.Build.Lang, d.Name()):
			return nil
		}
		if info, err := d.Info(); err == nil && info.ModTime().After(newest) {
			newest, file = info.ModTime(), path
		}
		return nil
	})
	return file
}

// isIgnoredDir reports whether a folder contains no sources of the policy.
func isIgnoredDir(name string) bool {
	return strings.HasPrefix(name, ".") || slices.Contains([]string{"node_modules", "target", "testdata"}, name)
}

func isSource(lang, name string) bool {
	return slices.Contains(extensions[lang], filepath.Ext(name)) && !strings.HasSuffix(name, "_test.go")
}
