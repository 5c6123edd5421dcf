package cmdutil

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/suggest"
	"github.com/cede-scheduler/cede/sdk/client"
)

// isNamespaced reports whether the objects of a command are in namespaces.
func isNamespaced(cmd *cobra.Command) bool {
	return cmd.HasParent() && slices.Contains([]string{"job", "alloc", "eval", "budget", "binding"}, cmd.Parent().Name())
}

// warnEmptyNamespace prints a warning if nothing was found in a named namespace that is
// empty. A namespace need not be created before objects use it, so that a mistyped name
// is not an error.
func (c *Connection) warnEmptyNamespace(ctx context.Context, d Document, err error) {
	ns := c.RequestedNamespace()
	found := err == nil && len(d.Names) > 0 || err != nil && AsError(err).Exit != ExitNotFound
	if found || ns == "" || ns == "*" || ns == model.DefaultNamespace || c.Client == nil || ctx.Err() != nil {
		return
	}
	list, _, err := c.Client.Namespaces().List(ctx, nil)
	if err != nil {
		return // only the hint is lost
	}
	names := NamesOf(list, func(n *client.Namespace) string { return n.Name })
	if slices.Contains(names, ns) {
		return
	}
	text := fmt.Sprintf("namespace %q is empty", ns)
	switch near := Suggest(ns, names); {
	case len(near) > 0:
		text += "; " + suggest.Question(near...)
	case len(names) > 0:
		const most = 5
		more := ""
		if len(names) > most {
			names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
		}
		text += "; the namespaces are " + strings.Join(names, ", ") + more
	}
	c.Env.Warn(text)
}
