//go:build !linux || (!amd64 && !arm64)

package process

import (
	"errors"
	"runtime"
)

var errNoSandbox = errors.New("processes cannot be isolated on " + runtime.GOOS + "/" + runtime.GOARCH)

// sandboxState returns an error: nothing isolates processes here.
func sandboxState() (string, error) { return "", errNoSandbox }

// enterSandbox returns an error.
func enterSandbox(string, string, uint32) error { return errNoSandbox }
