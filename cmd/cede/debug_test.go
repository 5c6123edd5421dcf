package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is collected for somebody else is all that can be had, and holds no secret that
// the server, its log or the caller knows.
func TestOperatorDebug_HoldsEverythingButSecrets(t *testing.T) {
	const plans = "a-secret-that-signs-plans-and-nothing-else"
	signs := filepath.Join(t.TempDir(), "secret")
	do(t, os.WriteFile(signs, []byte(plans), 0o600))
	measured := freePort(t)
	t.Setenv("CEDE_LISTEN__METRICS", measured)
	d := serverAt(t, "", strings.Replace(kept, "{enabled: true,", `{enabled: true, secret: "file:`+signs+`",`, 1)+"\nacl: {enabled: true}\nlog: {level: debug}")
	d.start()
	d.firstToken()
	log := filepath.Join(t.TempDir(), "cede.log")
	do(t, os.WriteFile(log, []byte(d.all.String()+"\na line with token="+d.token+" in it\n"), 0o600))
	bundle := d.debug("--log", log, "--metrics-addr", "http://"+measured)
	for name, text := range bundle {
		for what, secret := range map[string]string{"token": d.token, "secret of plans": plans} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s is in %s", what, name)
			}
		}
	}
	for name, has := range map[string]string{
		"version.json": "Version", "self.json": "", "members.json": "", "raft.json": "Leader", "broker.json": "", "decisions.json": "", "log.txt": "a line with",
		"metrics.txt": "\ncede_raft_voters 1\n", "goroutines.txt": "goroutine 1 [", "heap.pb.gz": "\x1f\x8b",
	} {
		if text, there := bundle[name]; !there || !strings.Contains(text, has) {
			t.Errorf("%s is not in the bundle, or without %q", name, has)
		}
	}
	if text, some := bundle["missing.txt"]; some {
		t.Errorf("something is missing: %s", text)
	}
	// What cannot be had keeps nothing else from being there.
	bundle = d.debug("--metrics-addr", "http://"+freePort(t))
	for _, name := range []string{"metrics.txt", "goroutines.txt", "heap.pb.gz"} {
		if _, there := bundle[name]; there || !strings.Contains(bundle["missing.txt"], name+": ") {
			t.Errorf("%s is not said to be missing: %q", name, bundle["missing.txt"])
		}
	}
	if bundle["raft.json"] == "" {
		t.Error("without metrics there is nothing")
	}
}

// debug collects, and gives the files of the bundle by name.
func (d *durable) debug(args ...string) map[string]string {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "bundle.tar.gz")
	said, err := cede(d.t, append([]string{"operator", "debug", "-w", file, "--addr", d.url, "--token", d.token}, args...)...)
	if err != nil {
		d.t.Fatalf("%v: %s", err, said)
	}
	f, err := os.Open(file)
	do(d.t, err)
	defer func() { _ = f.Close() }()
	zip, err := gzip.NewReader(f)
	do(d.t, err)
	files := map[string]string{}
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		do(d.t, err)
		text, err := io.ReadAll(archive)
		do(d.t, err)
		files[filepath.Base(h.Name)] = string(text)
	}
}
