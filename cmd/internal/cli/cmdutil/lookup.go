package cmdutil

import (
	"cmp"
	"context"
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

// ServerNames holds the names of the servers of a pool, by ID.
type ServerNames map[string]string

// ReadServerNames returns the names of the servers of the pool. If they cannot be read, it
// returns nil, and servers are printed by ID.
func ReadServerNames(ctx context.Context, api *client.Client) ServerNames {
	list, err := api.Status().Members(ctx)
	if err != nil {
		return nil
	}
	names := ServerNames{}
	for _, m := range list.Members {
		names[m.Name] = m.Tags["name"]
	}
	return names
}

// Of returns the name of a server, or its ID if it has none.
func (n ServerNames) Of(id string) string { return cmp.Or(n[id], id) }

// Full returns the name of a server with its ID, or the ID if it has no other name.
func (n ServerNames) Full(id string) string {
	if name := n.Of(id); name != id {
		return name + " (" + id + ")"
	}
	return id
}
