package meter_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The .wasm files are committed, so that no other test needs tools.
//go:generate sh -c "if command -v wat2wasm >/dev/null; then for f in testdata/*.wat; do wat2wasm $DOLLAR{f} -o $DOLLAR{f%wat}wasm || exit 1; done; else echo 'LEFT OUT: install wabt to rebuild plugins/wasm/meter/testdata/*.wasm' >&2; fi"

func TestFixtures_MatchSources(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("wat2wasm"); err != nil {
		t.Skip("no wat2wasm: install wabt to compare the fixtures with their sources")
	}
	sources, err := filepath.Glob("testdata/*.wat")
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources", err)
	}
	for _, source := range sources {
		built := filepath.Join(t.TempDir(), "built.wasm")
		command(t, nil, "wat2wasm", source, "-o", built)
		fixture := strings.TrimSuffix(source, "wat") + "wasm"
		if !bytes.Equal(read(t, built), read(t, fixture)) {
			t.Errorf("%s is not what %s says: run make generate", fixture, source)
		}
	}
}
