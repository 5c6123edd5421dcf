package replication

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// protocVersion is the line of a generated file that names the compiler, which
// is Debian's whatever it is; the generator is pinned.
var protocVersion = regexp.MustCompile(`(?m)^// -?\s+protoc\s.*$`)

// The messages are generated from their definition, by make generate.
func TestReplicationpb_IsAsGenerated(t *testing.T) {
	if _, err := exec.LookPath("protoc"); err != nil {
		t.Skip("protoc is not installed: apt-get install protobuf-compiler")
	}
	const folder, name = "replicationpb", "replication.pb.go"
	dir := t.TempDir()
	if out, err := exec.Command(filepath.Join(folder, "generate.sh"), dir).CombinedOutput(); err != nil {
		if strings.Contains(string(out), "dial tcp") || strings.Contains(string(out), "module lookup disabled") {
			t.Skipf("the generator cannot be fetched: %s", out)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	if protocVersion.ReplaceAllString(string(got), "") != protocVersion.ReplaceAllString(string(want), "") {
		t.Errorf("%s is not what replication.proto makes: run make generate", name)
	}
}
