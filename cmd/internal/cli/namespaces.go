package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// spaced is whether a command is about things that are in a namespace.
func spaced(cmd *cobra.Command) bool {
	return cmd.HasParent() && slices.Contains([]string{"job", "alloc", "eval", "budget", "binding"}, cmd.Parent().Name())
}

// doubtNamespace warns where nothing was found in a namespace that was named and has
// nothing in it at all. Namespaces are there with what is in them, so a mistyped one
// is no error, and looks like an empty one.
func (c *connection) doubtNamespace(ctx context.Context, d document, err error) {
	ns := c.namespaceFlag()
	found := err == nil && len(d.names) > 0 || err != nil && asError(err).Exit != ExitNotFound
	if found || ns == "" || ns == "*" || ns == model.DefaultNamespace || c.client == nil || ctx.Err() != nil {
		return
	}
	list, _, err := c.client.Namespaces().List(ctx, nil)
	if err != nil {
		return // it was a hint
	}
	names := namesOf(list, func(n *client.Namespace) string { return n.Name })
	if slices.Contains(names, ns) {
		return
	}
	text := fmt.Sprintf("namespace %q has no job, binding or budget in it", ns)
	switch near := nearWords(ns, names); {
	case len(near) > 0:
		text += "; did you mean " + oneOf(near) + "?"
	case len(names) > 0:
		const most = 5
		more := ""
		if len(names) > most {
			names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
		}
		text += "; there is something in " + strings.Join(names, ", ") + more
	}
	c.env.warn(text)
}
