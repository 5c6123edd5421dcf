package cmdutil

// Exit is the exit code of the process.
type Exit int

// The exit codes. Scripts rely on them.
const (
	ExitOK          Exit = 0   // done
	ExitError       Exit = 1   // error, or an expectation that did not hold
	ExitUsage       Exit = 2   // wrong usage, or a file that does not validate
	ExitUnreachable Exit = 3   // no server reached, or no leader
	ExitNotFound    Exit = 4   // not found
	ExitConflict    Exit = 5   // an index or plan token no longer holds
	ExitUnplaced    Exit = 6   // submitted, but not every instance could be placed
	ExitPolicy      Exit = 7   // a policy was at fault
	ExitCheck       Exit = 8   // a requested check failed
	ExitInterrupted Exit = 130 // interrupted
)

// ExitOf returns the exit code of an error.
func ExitOf(err error) Exit {
	if err == nil {
		return ExitOK
	}
	return AsError(err).Exit
}

// MoreSevere returns the exit code of a command of which two parts ended with a and b:
// usage errors first, then policy failures, then failed expectations.
func MoreSevere(a, b Exit) Exit {
	for _, e := range []Exit{ExitInterrupted, ExitUsage, ExitPolicy, ExitError, ExitCheck} {
		if a == e || b == e {
			return e
		}
	}
	return max(a, b)
}
