package cmdutil

import (
	"context"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

// MaxList is how many rows a list shows.
const MaxList = 100

// Lister is a call that answers a page of a list.
type Lister[T any] = func(context.Context, *client.QueryOptions) ([]T, *client.QueryMeta, error)

// ListAll reads every page of a list.
func ListAll[T any](ctx context.Context, q *client.QueryOptions, get Lister[T]) ([]T, error) {
	list := []T{}
	err := client.AllPages(ctx, q, func(ctx context.Context, q *client.QueryOptions) (*client.QueryMeta, error) {
		page, meta, err := get(ctx, q)
		list = append(list, page...)
		return meta, err
	})
	return list, InterruptError(ctx, err)
}

func NamesOf[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = name(e)
	}
	return names
}

// List prints a table, or that there is nothing to print.
func (p Page) List(t *term.Table, what, hint string) {
	if t.Len() > 0 || p.NoHeaders {
		p.Table(t)
		return
	}
	p.Printf("No %s; %s\n", what, hint)
}
