package confine

import "testing"

func TestOutOfMemory_RecognizesRuntimes(t *testing.T) {
	for output, want := range map[string]bool{
		"fatal error: runtime: out of memory": true,
		"runtime: cannot allocate memory":     true,
		// The collector of Go 1.26 when it could not get a block for its queue.
		"SIGSEGV: segmentation violation\nPC=0x432ffd m=0 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0x76fbe0 m=0 mp=0x770be0 [idle]:":     true,
		"terminate called after throwing an instance of 'std::bad_alloc'":                                                            true,
		"memory allocation of 1048576 bytes failed":                                                                                  true,
		"panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1]": false,
		"panic: memory": false,
		"":              false,
	} {
		if got := OutOfMemory(output); got != want {
			t.Errorf("%q: %t", output, got)
		}
	}
}
