package guesttest

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// In a guest an int has 32 bits. The tests of the decoder, including hostile frames, also
// run with such an int.
func TestDecoder_SupportsInt32(t *testing.T) {
	if soak.Race || runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("runs programs for 386 where the machine does")
	}
	test := exec.Command("go", "test", "../../../sdk/abi")
	test.Env = append(os.Environ(), "GOARCH=386", "CGO_ENABLED=0")
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
