package client

import "context"

// Namespace is a scope of names. It exists implicitly while it holds an object.
type Namespace struct {
	Name                    string
	Jobs, Bindings, Budgets int // numbers of its objects
}

// Namespaces holds the calls for namespaces; see Client.Namespaces.
type Namespaces struct{ c *Client }

// List lists the namespaces that hold an object, ascending by name.
func (n Namespaces) List(ctx context.Context, q *QueryOptions) (list []*Namespace, meta *QueryMeta, err error) {
	meta, err = n.c.get(ctx, q, &list, "namespaces")
	return list, meta, err
}
