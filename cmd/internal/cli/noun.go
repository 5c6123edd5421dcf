package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Things that are kept by name, such as priority classes and budgets, are listed,
// applied from files, described and deleted with one grammar. What is particular
// to a noun stands in its file; what its commands share stands here.

// noun is what such things are called.
type noun struct {
	command string // cede COMMAND list
	one     string // in messages: priority class
	many    string
	origin  string // where they come from, for a list that is empty
	spaced  bool   // whether each is in a namespace
	id      string // what they go by where that is no name; "": their name
}

// elsewhere is said where there is none in a namespace.
const elsewhere = "; --namespace names another namespace"

// holder is the command that has a noun's verbs.
func (n noun) holder(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	cmd.Use = n.command
	group(cmd)
	cmd.AddCommand(verbs...)
	return cmd
}

// verb makes cmd one that takes one of these things and asks a server about it.
func (n noun) verb(env *Env, cmd *cobra.Command, answer func(ctx context.Context, c *connection, name string) (document, error)) *cobra.Command {
	cmd.Args = arguments(1, 1, "one "+n.one)
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		d, err := answer(ctx, c, args[0])
		return d, n.named(args[0], err)
	})
}

// named says that there is none of a name, or which there are several of, where that
// is what err says.
func (n noun) named(name string, err error) error {
	if client.IsNotFound(err) {
		return n.none(name, err)
	}
	if refusal, ok := errors.AsType[*client.Error](err); ok && refusal.Code == client.CodeInvalid {
		if ids := textsOf(refusal.Details["IDs"]); len(ids) > 1 {
			return ambiguous(n.one, name, ids)
		}
	}
	return err
}

// textsOf is a list of texts in the details of an error; nil: it is none.
func textsOf(detail any) (texts []string) {
	list, _ := detail.([]any)
	for _, each := range list {
		if text, ok := each.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// none says that there is none of a name.
func (n noun) none(name string, err error) error {
	hint := "`cede " + n.command + " list` lists them"
	if n.spaced {
		hint += elsewhere
	}
	if n.id != "" {
		hint += " with their " + n.id + "s, which they go by"
	}
	return missing(n.one, name, hint, err)
}

// listVerb is what is particular to listing things of a noun.
type listVerb[T any] struct {
	short string
	get   func(*client.Client) lister[T]
	order func(a, b T) int // nil: as the server lists them
	name  func(T) string
	table func(page, []T) *term.Table
}

func listCmd[T any](env *Env, n noun, l listVerb[T]) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: l.short, Example: "  cede " + n.command + " list", Args: arguments(0, 0, "no arguments")}
	return asking(env, cmd, func(ctx context.Context, c *connection, _ []string) (document, error) {
		list, err := all(ctx, c.query(), l.get(c.client))
		if err != nil {
			return document{}, err
		}
		if l.order != nil {
			slices.SortStableFunc(list, l.order)
		}
		return document{data: list, names: namesOf(list, l.name), page: func(p page) {
			hint := n.origin
			if n.spaced && c.namespaceFlag() != "*" {
				hint += elsewhere
			}
			p.list(l.table(p, list), n.many, hint)
		}}, nil
	})
}

// applyVerb is what is particular to applying a file of a noun: what it holds, and
// what became of each thing.
type applyVerb[T, R any] struct {
	read  func(file string, text []byte) ([]T, error)
	put   func(context.Context, *connection, T) (R, error)
	name  func(R) string
	table func(page, []R) *term.Table
}

// maxApplied is the size of the largest file that is applied, in bytes.
const maxApplied = 4 << 20

func applyCmd[T, R any](env *Env, cmd *cobra.Command, a applyVerb[T, R]) *cobra.Command {
	cmd.Use, cmd.Args = "apply FILE", arguments(1, 1, "one file")
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		text, err := env.readAll(args[0], maxApplied)
		if err != nil {
			return document{}, err
		}
		list, err := a.read(args[0], text)
		if err != nil {
			return document{}, err
		}
		results := make([]R, len(list))
		for i, x := range list {
			if results[i], err = a.put(ctx, c, x); err != nil {
				return document{}, err
			}
		}
		return document{data: results, names: namesOf(results, a.name), page: func(p page) { p.table(a.table(p, results)) }}, nil
	})
}

// said is a result of which people are told a sentence.
func said(data any, name, format string, args ...any) document {
	return document{data: data, names: []string{name}, page: func(p page) { p.printf(format+"\n", args...) }}
}
