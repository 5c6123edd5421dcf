package client

import (
	"context"
	"net/http"
)

// Namespace partitions the names of jobs, bindings and budgets, and has a share of the
// cluster. A namespace that was not created exists while it contains objects.
type Namespace struct {
	Name        string
	Description string `json:",omitempty"`
	// Weight is the share of the cluster that the namespace is entitled to, relative to
	// the weights of the others. In a write, nil retains the weight; the weight of a new
	// namespace is 1. In responses it is never nil.
	Weight *float64 `json:",omitempty"`

	Jobs, Bindings, Budgets int // numbers of its objects; ignored in writes

	// The indexes are 0 if the namespace was not created. They are ignored in writes.
	CreateIndex, ModifyIndex uint64
}

// Namespaces holds the calls for namespaces; see Client.Namespaces.
type Namespaces struct{ c *Client }

// List lists the namespace default, those that were created, and those that contain
// objects, ascending by name.
func (n Namespaces) List(ctx context.Context, q *QueryOptions) (list []*Namespace, meta *QueryMeta, err error) {
	meta, err = n.c.get(ctx, q, &list, "namespaces")
	return list, meta, err
}

// Get returns a namespace.
func (n Namespaces) Get(ctx context.Context, name string, q *QueryOptions) (*Namespace, *QueryMeta, error) {
	out := &Namespace{}
	meta, err := n.c.get(ctx, q, out, "namespace", name)
	return out, meta, err
}

// Put creates or changes a namespace. With check, it is written only if its ModifyIndex
// equals check, where 0 means that it was not created; otherwise the error is a conflict.
func (n Namespaces) Put(ctx context.Context, namespace *Namespace, check *uint64) (*IndexResponse, error) {
	r, err := n.c.call(http.MethodPut, "namespace", namespace.Name).json(namespace)
	if err != nil {
		return nil, err
	}
	out := &IndexResponse{}
	_, err = r.check(check).do(ctx, out)
	return out, err
}

// Delete deletes a namespace that contains nothing. With check, it is deleted only if its
// ModifyIndex equals check; otherwise the error is a conflict.
func (n Namespaces) Delete(ctx context.Context, name string, check *uint64) (*IndexResponse, error) {
	r := n.c.call(http.MethodDelete, "namespace", name)
	out := &IndexResponse{}
	_, err := r.check(check).do(ctx, out)
	return out, err
}
