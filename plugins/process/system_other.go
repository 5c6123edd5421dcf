//go:build !linux

package process

import "os/exec"

// setProcAttr does nothing: the process ends with the host because its standard input
// closes, if it uses sdk/serve.
func setProcAttr(*exec.Cmd, uint32) {}

// isMainThread returns false: threads are not restricted here.
func isMainThread() bool { return false }

// setLimits does nothing: there is no portable way to bound another process.
func setLimits(int, int64) error { return nil }

// awaitExit does nothing: the caller reaps the process.
func awaitExit(int) {}

// killGroup does nothing: processes have no group of their own here.
func killGroup(int) {}
