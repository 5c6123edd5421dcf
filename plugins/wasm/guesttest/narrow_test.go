package guesttest

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// In a guest an int has 32 bits, and what a frame says has as many. The tests of
// the decoder, hostile frames among them, run with such an int too.
func TestDecoder_HoldsWhereAnIntHas32Bits(t *testing.T) {
	if racing || runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("runs programs for 386 where the machine does")
	}
	test := exec.Command("go", "test", "../../../sdk/abi")
	test.Env = append(os.Environ(), "GOARCH=386", "CGO_ENABLED=0")
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
