//go:build !wasip1 && !process

package serve

import (
	"fmt"
	"os"
)

// Serve reports how this program must be built, and exits with code 1.
func Serve() {
	newGuest() // panics if no policy is registered, which is the more urgent defect
	fmt.Fprintln(os.Stderr, "this policy was built as an ordinary program: build it with `cede policy build`, or as a process with "+
		"`go build -tags process`, or as a WebAssembly module with `GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared`")
	os.Exit(1)
}

// Log writes a line to standard error, because no host runs this program.
func Log(_ int32, text string) { fmt.Fprintln(os.Stderr, text) }
