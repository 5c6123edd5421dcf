package policyflags

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func TestDisplayNames_UseManifestsIfUnambiguous(t *testing.T) {
	t.Chdir(t.TempDir())
	for dir, name := range map[string]string{".": "thrifty", "a/b": "other", "c": "thrifty", "d": "nomad"} {
		text := "version: 1\nname: " + name + "\nkind: wasm\nmodule: x.wasm\nabi: {min: \"1.0\"}\n"
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []map[string]string{
		{".": "thrifty", "a/b": "other", "default": "default", "x.wasm": "x.wasm"},
		{"./": "thrifty", "./?negligible=5m": "thrifty?negligible=5m"},
		{".": ".", "c": "c", "a/b": "other"}, // two policies of the same name
		{".": ".", "thrifty": "thrifty"},     // it may be a variant
		{"d": "d"},                           // the name of a built-in policy
	} {
		var written []string
		for w := range want {
			written = append(written, w)
		}
		if got := DisplayNames(written); !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
