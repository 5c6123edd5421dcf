package client

import "context"

// Namespace is a part of what there is, in which names are its own. Nobody makes
// one: it is there with the first thing in it, and gone with the last.
type Namespace struct {
	Name                    string
	Jobs, Bindings, Budgets int // how many it has
}

// Namespaces is what can be done with namespaces; Client.Namespaces makes one.
type Namespaces struct{ c *Client }

// List lists the namespaces that have something in them, ascending by name.
func (n Namespaces) List(ctx context.Context, q *QueryOptions) (list []*Namespace, meta *QueryMeta, err error) {
	meta, err = n.c.get(ctx, q, &list, "namespaces")
	return list, meta, err
}
