package toolchain

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/cede-scheduler/cede/plugins/bundle"
)

// compositionModule writes the archive of the policies that the manifest names. It requires
// no other program.
func compositionModule(ctx context.Context, p *Project, out string) error {
	code, err := archive(ctx, p)
	if err != nil {
		return err
	}
	return os.WriteFile(out, code, 0o666)
}

// archive returns the archive of the policies that the manifest names.
func archive(ctx context.Context, p *Project) ([]byte, error) {
	code, _, err := p.Builder.Archive(ctx, p.Manifest.Name, p.Dir, p.Manifest.Use)
	if err != nil {
		return nil, bundle.PrefixLines(filepath.Join(p.Dir, bundle.ManifestFile), err)
	}
	return code, nil
}

// compositionStale returns the newest module of a part that was built after the composition;
// "" if there is none.
func compositionStale(b *bundle.Bundle) string {
	archive, err := os.Stat(b.Path)
	if err != nil {
		return ""
	}
	newest, file := archive.ModTime().Add(writeTolerance), ""
	for _, ref := range b.Manifest.Use.Refs() {
		path, ok := bundle.PathOf(ref, b.Dir)
		if !ok {
			continue
		}
		if m, _, err := bundle.ReadManifest(path); err == nil {
			path = filepath.Join(path, filepath.FromSlash(m.Module))
		}
		if at := modified(path); at.After(newest) {
			newest, file = at, path
		}
	}
	return file
}

// modified returns when a file was modified; the zero time if it is not a file.
func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return time.Time{}
	}
	return info.ModTime()
}
