package web

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The committed bundle is the one that its sources result in.
func TestAssets_AreBuiltFromTheirSources(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: apt-get install nodejs")
	}
	if _, err := os.Stat("ui/node_modules/esbuild"); err != nil {
		t.Skip("esbuild is not installed: npm --prefix core/web/ui ci")
	}
	out := filepath.Join(t.TempDir(), "assets")
	cmd := exec.CommandContext(t.Context(), node, "build.mjs", out)
	cmd.Dir = "ui"
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	committed := load()
	built, err := os.ReadDir(out)
	if err != nil || len(built) != len(committed) {
		t.Fatalf("%d files were built, %d are committed: %v", len(built), len(committed), err)
	}
	for _, f := range built {
		content, err := os.ReadFile(filepath.Join(out, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if a := committed[f.Name()]; a == nil || !bytes.Equal(a.content, content) {
			t.Errorf("%s differs from its sources: run go generate ./core/web", f.Name())
		}
	}
}
