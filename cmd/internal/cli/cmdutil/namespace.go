package cmdutil

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// isNamespaced is whether a command is about things that are in a namespace.
func isNamespaced(cmd *cobra.Command) bool {
	return cmd.HasParent() && slices.Contains([]string{"job", "alloc", "eval", "budget", "binding"}, cmd.Parent().Name())
}

// warnEmptyNamespace warns where nothing was found in a namespace that was named and has
// nothing in it at all. Namespaces are there with what is in them, so a mistyped one
// is no error, and looks like an empty one.
func (c *Connection) warnEmptyNamespace(ctx context.Context, d Document, err error) {
	ns := c.RequestedNamespace()
	found := err == nil && len(d.Names) > 0 || err != nil && AsError(err).Exit != ExitNotFound
	if found || ns == "" || ns == "*" || ns == model.DefaultNamespace || c.Client == nil || ctx.Err() != nil {
		return
	}
	list, _, err := c.Client.Namespaces().List(ctx, nil)
	if err != nil {
		return // it was a hint
	}
	names := NamesOf(list, func(n *client.Namespace) string { return n.Name })
	if slices.Contains(names, ns) {
		return
	}
	text := fmt.Sprintf("namespace %q is empty", ns)
	switch near := Suggest(ns, names); {
	case len(near) > 0:
		text += "; did you mean " + JoinOr(near) + "?"
	case len(names) > 0:
		const most = 5
		more := ""
		if len(names) > most {
			names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
		}
		text += "; namespaces in use: " + strings.Join(names, ", ") + more
	}
	c.Env.Warn(text)
}
