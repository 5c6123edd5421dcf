//go:build !linux

package process

import "os/exec"

// confine leaves a process as it is: it ends with the host because its standard
// input does, if its author has used sdk/serve.
func confine(*exec.Cmd) {}

// limit does nothing: there is no way to bound another process that holds
// everywhere.
func limit(int, int64) error { return nil }

// awaitExit leaves the waiting to who reaps.
func awaitExit(int) {}

// killGroup does nothing: a process has no group of its own here.
func killGroup(int) {}
