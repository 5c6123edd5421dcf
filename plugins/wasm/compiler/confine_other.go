//go:build !unix

package compiler

import "os/exec"

// confine does nothing: only the time of the process is bounded on this system.
func confine(Budget) error { return nil }

func killed(*exec.ExitError, Budget) (killed, outOfTime bool) { return false, false }

func isTooLarge(error) bool { return false }
