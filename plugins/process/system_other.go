//go:build !linux

package process

import "os/exec"

// setProcAttr does nothing: the process ends with the host because its standard input
// closes, if it uses sdk/serve.
func confine(*exec.Cmd) {}

// setLimits does nothing: there is no portable way to bound another process.
func limit(int, int64) error { return nil }

// awaitExit does nothing: the caller reaps the process.
func awaitExit(int) {}

// killGroup does nothing: processes have no group of their own here.
func killGroup(int) {}
