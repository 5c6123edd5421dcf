package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// protocVersion is the line of a generated file that names the compiler, which
// is Debian's whatever it is; the generators are pinned.
var protocVersion = regexp.MustCompile(`(?m)^// -?\s+protoc\s.*$`)

// The service is generated from its definition, by make generate.
func TestPolicypb_IsAsGenerated(t *testing.T) {
	if _, err := exec.LookPath("protoc"); err != nil {
		t.Skip("protoc is not installed: apt-get install protobuf-compiler")
	}
	const folder = "../../sdk/serve/policypb"
	dir := t.TempDir()
	if out, err := exec.Command(filepath.Join(folder, "generate.sh"), dir).CombinedOutput(); err != nil {
		if strings.Contains(string(out), "dial tcp") || strings.Contains(string(out), "module lookup disabled") {
			t.Skipf("the generators cannot be fetched: %s", out)
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
			t.Errorf("%s is not what policy.proto makes: run make generate", name)
		}
	}
}
