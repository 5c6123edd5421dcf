package cmdutil

import (
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/sdk/client"
)

// ReplaceNotFound says what was not found in the words of the command line.
func ReplaceNotFound(err error, what, id, hint string) error {
	if !client.IsNotFound(err) {
		return err
	}
	return NotFound(what, id, hint, err)
}

// NotFound is a thing that there is not, as err says if it does.
func NotFound(what, id, hint string, err error) error {
	return &Error{Exit: ExitNotFound, Code: client.CodeNotFound, Message: fmt.Sprintf("no %s %q", what, id), Hint: hint, Err: err}
}

// Ambiguous is a prefix that several ids begin with.
func Ambiguous(what, id string, ids []string) error {
	return &Error{
		Exit: ExitUsage, Code: CodeUsage, Message: fmt.Sprintf("%q is ambiguous: it matches %ss %s", id, what, strings.Join(ids, ", ")),
		Hint: "use a longer prefix",
	}
}
