package cmdutil

import (
	"context"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

// MaxList limits the rows of a list unless the page is wide.
const MaxList = 100

// A Lister returns one page of a list.
type Lister[T any] = func(context.Context, *client.QueryOptions) ([]T, *client.QueryMeta, error)

// ListAll reads all pages of a list.
func ListAll[T any](ctx context.Context, q *client.QueryOptions, get Lister[T]) ([]T, error) {
	list := []T{}
	err := client.AllPages(ctx, q, func(ctx context.Context, q *client.QueryOptions) (*client.QueryMeta, error) {
		page, meta, err := get(ctx, q)
		list = append(list, page...)
		return meta, err
	})
	return list, InterruptError(ctx, err)
}

// NamesOf returns the name of each element, in the order of the list.
func NamesOf[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = name(e)
	}
	return names
}

// List prints a table, or a message and a hint if it is empty.
func (p Page) List(t *term.Table, what, hint string) {
	if t.Len() > 0 || p.NoHeaders {
		p.Table(t)
		return
	}
	p.Printf("No %s; %s\n", what, hint)
}
