package replicationpb_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// protocVersion is the line of a generated file that names the compiler. Any
// version of Debian's compiler is accepted; the generator is pinned.
var protocVersion = regexp.MustCompile(`(?m)^// -?\s+protoc\s.*$`)

func TestMessages_MatchTheirDefinition(t *testing.T) {
	if _, err := exec.LookPath("protoc"); err != nil {
		t.Skip("protoc is not installed: apt-get install protobuf-compiler")
	}
	const name = "replication.pb.go"
	dir := t.TempDir()
	if out, err := exec.Command("./generate.sh", dir).CombinedOutput(); err != nil {
		if strings.Contains(string(out), "dial tcp") || strings.Contains(string(out), "module lookup disabled") {
			t.Skipf("the generator cannot be downloaded: %s", out)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if protocVersion.ReplaceAllString(string(got), "") != protocVersion.ReplaceAllString(string(want), "") {
		t.Errorf("%s is outdated: run make generate", name)
	}
}
