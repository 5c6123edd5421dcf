//go:build unix

package confine

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A limit that the process inherited, and cannot raise, is kept without an error.
func TestApply_KeepsLowerLimits(t *testing.T) {
	const child = "CEDE_TEST_CONFINED"
	if os.Getenv(child) != "" {
		lower := syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &lower); err != nil {
			t.Fatal(err)
		}
		if err := Apply(Limits{Memory: 1 << 40, CPU: time.Hour, File: 1 << 30}); err != nil {
			t.Fatal(err)
		}
		var now syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &now); err != nil || now != lower {
			t.Fatalf("limit %+v, %v", now, err)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), child+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}
