package toolchain

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/rules"
)

// rulesModule compiles the rules in the manifest. It requires no other program.
func rulesModule(_ context.Context, p *Project, out string) error {
	code, err := compileRules(p.Dir, p.Manifest)
	if err != nil {
		return err
	}
	return os.WriteFile(out, code, 0o666)
}

func compileRules(dir string, m *bundle.Manifest) ([]byte, error) {
	path := filepath.Join(dir, filepath.FromSlash(m.Build.Source))
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	source, err := rules.ParseManifest(path, m.Name, text)
	if err != nil {
		return nil, err
	}
	return rules.Compile(source)
}

// CheckEntries returns the problems of the rules in the manifest, or of the policies that it
// uses, so that they are reported with the problems of its other fields. The manifest may be
// nil.
func (p *Project) CheckEntries(ctx context.Context) error {
	switch m := p.Manifest; {
	case m == nil:
		return nil
	case m.Use != nil:
		_, err := archive(ctx, p)
		return err
	case len(m.Rules) > 0 && m.Build != nil:
		_, err := compileRules(p.Dir, m)
		return err
	}
	return nil
}

// rulesStale returns the manifest if its rules result in another module. Their times do not
// tell: a build writes the manifest after the module. Invalid rules are left to the build.
func rulesStale(b *bundle.Bundle) string {
	code, err := compileRules(b.Dir, &b.Manifest)
	if err != nil || bytes.Equal(code, b.Code) {
		return ""
	}
	return filepath.Join(b.Dir, bundle.ManifestFile)
}
