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

// The bundle contains every available file and none of the secrets of the server, its log
// or the caller.
func TestOperatorDebug_CollectsAllFilesWithoutSecrets(t *testing.T) {
	t.Parallel()
	const plans = "a-secret-that-signs-plans-and-nothing-else"
	secretFile := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secretFile, []byte(plans), 0o600))
	metricsAddr := freePort(t)
	d := newServer(t, "", strings.Replace(fullLogConfig, "{enabled: true,", `{enabled: true, secret: "file:`+secretFile+`",`, 1)+"\nacl: {enabled: true}\nlog: {level: debug}")
	d.env = []string{"CEDE_LISTEN__METRICS=" + metricsAddr}
	d.start()
	d.readBootstrapToken()
	log := filepath.Join(t.TempDir(), "cede.log")
	must(t, os.WriteFile(log, []byte(d.allOutput.String()+"\na line with token="+d.token+" in it\n"), 0o600))
	bundle := d.debug("--log", log, "--metrics-addr", "http://"+metricsAddr)
	for name, text := range bundle {
		for kind, secret := range map[string]string{"token": d.token, "plan secret": plans} {
			if strings.Contains(text, secret) {
				t.Errorf("%s contains the %s", name, kind)
			}
		}
	}
	for name, has := range map[string]string{
		"version.json": "Version", "self.json": "", "members.json": "", "raft.json": "Leader", "broker.json": "", "decisions.json": "", "log.txt": "a line with",
		"metrics.txt": "\ncede_raft_voters 1\n", "goroutines.txt": "goroutine 1 [", "heap.pb.gz": "\x1f\x8b",
	} {
		if text, there := bundle[name]; !there || !strings.Contains(text, has) {
			t.Errorf("%s is missing from the bundle or does not contain %q", name, has)
		}
	}
	if text, some := bundle["missing.txt"]; some {
		t.Errorf("bundle reports missing files: %s", text)
	}
	// Files that cannot be collected are listed and do not affect the others.
	bundle = d.debug("--metrics-addr", "http://"+freePort(t))
	for _, name := range []string{"metrics.txt", "goroutines.txt", "heap.pb.gz"} {
		if _, there := bundle[name]; there || !strings.Contains(bundle["missing.txt"], name+": ") {
			t.Errorf("%s is not listed in missing.txt: %q", name, bundle["missing.txt"])
		}
	}
	if bundle["raft.json"] == "" {
		t.Error("raft.json is missing if metrics are unavailable")
	}
}

// debug collects a support bundle and returns its files by name.
func (d *serverProcess) debug(args ...string) map[string]string {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "bundle.tar.gz")
	output, err := cede(d.t, append([]string{"operator", "debug", "-w", file, "--addr", d.url, "--token", d.token}, args...)...)
	if err != nil {
		d.t.Fatalf("%v: %s", err, output)
	}
	f, err := os.Open(file)
	must(d.t, err)
	defer func() { _ = f.Close() }()
	zip, err := gzip.NewReader(f)
	must(d.t, err)
	files := map[string]string{}
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(d.t, err)
		text, err := io.ReadAll(archive)
		must(d.t, err)
		files[filepath.Base(h.Name)] = string(text)
	}
}
