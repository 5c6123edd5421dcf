package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// protocVersion matches the line with the version of protoc, which the distribution
// determines; the generators are pinned.
var protocVersion = regexp.MustCompile(`(?m)^// -?\s+protoc\s.*$`)

// The generated service must match its definition (make generate).
func TestPolicypb_MatchesDefinition(t *testing.T) {
	if _, err := exec.LookPath("protoc"); err != nil {
		t.Skip("protoc is required: apt-get install protobuf-compiler")
	}
	const folder = "../../sdk/serve/policypb"
	dir := t.TempDir()
	if out, err := exec.Command(filepath.Join(folder, "generate.sh"), dir).CombinedOutput(); err != nil {
		if strings.Contains(string(out), "dial tcp") || strings.Contains(string(out), "module lookup disabled") {
			t.Skipf("cannot fetch the generators: %s", out)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"policy.pb.go", "policy_grpc.pb.go"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if protocVersion.ReplaceAllString(string(got), "") != protocVersion.ReplaceAllString(string(want), "") {
			t.Errorf("%s differs from the output for policy.proto: run make generate", name)
		}
	}
}
