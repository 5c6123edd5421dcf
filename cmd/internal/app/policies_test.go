package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/config"
)

func TestPolicies_DirectoryIsLoadedAtStartAndReload(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile("../../../sdk/abi/testdata/guests/decay-c.wasm")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, _ := durable(t, fmt.Sprintf("policy: {directory: %s}\n", dir))
	c := load(t, config.Sources{Files: []string{file}, Environ: asSelf})
	s := start(t, c)
	loaded := func() (kinds []string) {
		for _, v := range s.server.state.Snapshot().PolicyVersions() {
			kinds = append(kinds, v.Kind)
		}
		return kinds
	}
	if got := loaded(); len(got) > 0 {
		t.Fatalf("policies of an empty directory: %v", got)
	}
	put("decay.wasm", module)
	put("note.txt", []byte("no policy"))
	changed, err := s.Reload(t.Context())
	if err != nil || len(changed) != 1 || !strings.HasPrefix(changed[0], "policy ") {
		t.Errorf("changed %v, %v", changed, err)
	}
	if changed, err = s.Reload(t.Context()); err != nil || len(changed) > 0 {
		t.Errorf("reload without changes changed %v, %v", changed, err)
	}
	put("broken.wasm", []byte("\x00asm and then nothing"))
	if _, err := s.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "broken.wasm") {
		t.Errorf("with an invalid module: %v", err)
	}
	s.end()
	s = start(t, c) // with one broken policy: the others are loaded, and a warning is logged
	if got := loaded(); !slices.Equal(got, []string{"wasm"}) {
		t.Errorf("policies after a restart: %v", got)
	}
	if !strings.Contains(s.log.String(), "broken.wasm") {
		t.Error("the log does not name the broken policy")
	}
}
