package cmdutil

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Named resources such as priority classes and budgets are listed, applied from
// files, described and deleted with one grammar. Each noun's own file holds its
// specifics; this file holds the shared part.

// A Resource describes a kind of named objects, such as priority classes and budgets,
// which have the same commands: list, apply, status and delete.
type Resource struct {
	Command    string // cede COMMAND list
	Singular   string // in messages: priority class
	Plural     string
	EmptyHint  string // how to create them, printed if a list is empty
	Namespaced bool   // objects have a namespace
	IDField    string // header of the identifier if it is not a name; "": name
}

// NamespaceHint is appended to hints about objects that may be in another namespace.
const NamespaceHint = "; --namespace selects another namespace"

// Group makes cmd the parent of a resource's commands.
func (n Resource) Group(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	cmd.Use = n.Command
	MakeGroup(cmd)
	cmd.AddCommand(verbs...)
	return cmd
}

// ItemCommand makes cmd a command that takes one resource and requests its document
// from a server.
func (n Resource) ItemCommand(env *Env, cmd *cobra.Command, answer func(ctx context.Context, c *Connection, name string) (Document, error)) *cobra.Command {
	cmd.Args = PositionalArgs(1, 1, "one "+n.Singular)
	return ServerCommand(env, cmd, func(ctx context.Context, c *Connection, args []string) (Document, error) {
		d, err := answer(ctx, c, args[0])
		return d, n.LookupError(args[0], err)
	})
}

// DeleteCommand makes cmd the subcommand that deletes one resource.
func (n Resource) DeleteCommand(env *Env, cmd *cobra.Command, remove func(ctx context.Context, api *client.Client, name string) (*client.IndexResponse, error)) *cobra.Command {
	cmd.Use = "delete NAME"
	return n.ItemCommand(env, cmd, func(ctx context.Context, c *Connection, name string) (Document, error) {
		answer, err := remove(ctx, c.Client, name)
		if err != nil {
			return Document{}, err
		}
		return MessageDocument(struct {
			Name  string
			Index uint64
		}{name, answer.Index}, name, "%s%s %s is deleted", strings.ToUpper(n.Singular[:1]), n.Singular[1:], name), nil
	})
}

// LookupError converts an error of the API into one that lists the missing or
// ambiguous name. It returns other errors unchanged.
func (n Resource) LookupError(name string, err error) error {
	if client.IsNotFound(err) {
		return n.NotFound(name, err)
	}
	if refusal, ok := errors.AsType[*client.Error](err); ok && refusal.Code == client.CodeInvalid {
		if ids := stringsIn(refusal.Details["IDs"]); len(ids) > 1 {
			return Ambiguous(n.Singular, name, ids)
		}
	}
	return err
}

// stringsIn returns a list of strings in the details of an error, or nil.
func stringsIn(detail any) (texts []string) {
	list, _ := detail.([]any)
	for _, each := range list {
		if text, ok := each.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// NotFound returns the error for a name without a resource.
func (n Resource) NotFound(name string, err error) error {
	hint := "`cede " + n.Command + " list` lists them"
	if n.Namespaced {
		hint += NamespaceHint
	}
	if n.IDField != "" {
		hint += " with their " + n.IDField + "s, which identify them"
	}
	return NotFound(n.Singular, name, hint, err)
}

// A ListSpec holds the specific parts of a list command.
type ListSpec[T any] struct {
	Short string
	Get   func(*client.Client) Lister[T]
	Order func(a, b T) int // nil: in the order of the server
	Name  func(T) string
	Table func(Page, []T) *term.Table
}

// NewListCmd returns the subcommand that lists all objects of a resource.
func NewListCmd[T any](env *Env, n Resource, l ListSpec[T]) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: l.Short, Example: "  cede " + n.Command + " list", Args: PositionalArgs(0, 0, "no arguments")}
	return ServerCommand(env, cmd, func(ctx context.Context, c *Connection, _ []string) (Document, error) {
		list, err := ListAll(ctx, c.QueryOptions(), l.Get(c.Client))
		if err != nil {
			return Document{}, err
		}
		if l.Order != nil {
			slices.SortStableFunc(list, l.Order)
		}
		return Document{Data: list, Names: NamesOf(list, l.Name), Page: func(p Page) {
			hint := n.EmptyHint
			if n.Namespaced && c.RequestedNamespace() != "*" {
				hint += NamespaceHint
			}
			p.List(l.Table(p, list), n.Plural, hint)
		}}, nil
	})
}

// An ApplySpec holds the specific parts of an apply command: how to read a file, store an
// entry and print the results.
type ApplySpec[T, R any] struct {
	Read  func(file string, text []byte) ([]T, error)
	Put   func(context.Context, *Connection, T) (R, error)
	Done  func(context.Context, *Connection) // called after all entries were stored; nil: nothing
	Name  func(R) string
	Table func(Page, []R) *term.Table
}

// maxApplied limits the size of a file to apply, in bytes.
const maxApplied = 4 << 20

// NewApplyCmd makes cmd the subcommand that applies the objects of a file.
func NewApplyCmd[T, R any](env *Env, cmd *cobra.Command, a ApplySpec[T, R]) *cobra.Command {
	cmd.Use, cmd.Args = "apply FILE", PositionalArgs(1, 1, "one file")
	return ServerCommand(env, cmd, func(ctx context.Context, c *Connection, args []string) (Document, error) {
		text, err := env.ReadFile(args[0], maxApplied)
		if err != nil {
			return Document{}, err
		}
		list, err := a.Read(args[0], text)
		if err != nil {
			return Document{}, err
		}
		results := make([]R, len(list))
		for i, x := range list {
			if results[i], err = a.Put(ctx, c, x); err != nil {
				return Document{}, err
			}
		}
		if a.Done != nil {
			a.Done(ctx, c)
		}
		return Document{Data: results, Names: NamesOf(results, a.Name), Page: func(p Page) { p.Table(a.Table(p, results)) }}, nil
	})
}

// MessageDocument returns a document whose page is one sentence.
func MessageDocument(data any, name, format string, args ...any) Document {
	return Document{Data: data, Names: []string{name}, Page: func(p Page) { p.Printf(format+"\n", args...) }}
}
