//go:build !wasip1 && !process

package serve

import (
	"fmt"
	"os"
)

// Serve says how this program has to be built to be of use.
func Serve() {
	newGuest() // a policy that is not registered is the more pressing news
	fmt.Fprintln(os.Stderr, "this policy was built as an ordinary program: build it with `cede policy build`, or as a process with "+
		"`go build -tags process`, or as a WebAssembly module with `GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared`")
	os.Exit(1)
}

// Log writes a line to standard error: nobody hosts this program.
func Log(_ int32, text string) { fmt.Fprintln(os.Stderr, text) }
