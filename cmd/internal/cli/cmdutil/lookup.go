package cmdutil

import (
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/sdk/client"
)

// ReplaceNotFound replaces a not-found error of the API by one in terms of the
// command line.
func ReplaceNotFound(err error, what, id, hint string) error {
	if !client.IsNotFound(err) {
		return err
	}
	return NotFound(what, id, hint, err)
}

// NotFound returns the error for a missing object. It wraps err, which may be nil.
func NotFound(what, id, hint string, err error) error {
	return &Error{Exit: ExitNotFound, Code: client.CodeNotFound, Message: fmt.Sprintf("no %s %q", what, id), Hint: hint, Err: err}
}

// Ambiguous returns the error for a prefix that matches several IDs.
func Ambiguous(what, id string, ids []string) error {
	return &Error{
		Exit: ExitUsage, Code: CodeUsage, Message: fmt.Sprintf("%q is ambiguous: it matches %ss %s", id, what, strings.Join(ids, ", ")),
		Hint: "use a longer prefix",
	}
}
