package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newTokenCmd(env *Env) *cobra.Command {
	tokens := noun{command: "token", one: "token", many: "tokens", origin: "`cede token create NAME --role ROLE` makes one", id: "accessor"}
	return tokens.holder(&cobra.Command{
		Short: "Say who may do what: make tokens, list them, make them void",
		Long: `Say who may do what: make tokens, list them, make them void.

Where acl.enabled is set, whoever asks a server shows a token's secret (CEDE_TOKEN).
A token has roles:

  read        see everything but tokens
  submit      register, plan and stop jobs and bindings; covers read
  operate     tend nodes, budgets, clusters and settings; covers submit
  policy      load, shadow, activate and unload policies
  node        what the agents of nodes and member clusters do
  management  everything, tokens included

The first server of a cluster writes the first token, which may do everything, into
bootstrap.token in its data directory.`,
		Example: `  cede token create ci --role submit --namespace web --ttl 720h
  cede token list
  cede token delete 4f2a`,
	},
		newTokenCreateCmd(env),
		listCmd(env, tokens, listVerb[*client.Token]{
			short: "List tokens, without their secrets",
			get:   func(api *client.Client) lister[*client.Token] { return api.Operator().Tokens },
			name:  func(t *client.Token) string { return t.AccessorID },
			table: func(p page, list []*client.Token) *term.Table { return p.tokenTable(env, list) },
		}),
		newTokenStatusCmd(env, tokens), newTokenDeleteCmd(env, tokens))
}

func (p page) tokenTable(env *Env, list []*client.Token) *term.Table {
	t := columns("ACCESSOR", "NAME", "ROLES", "NAMESPACE", "EXPIRES IN>", "AGE>")
	for _, k := range list {
		t.Row(p.id(k.AccessorID), k.Name, strings.Join(k.Roles, ", "), tokenSpace(k), env.expiry(k.ExpiresAt), env.ago(k.CreateTime))
	}
	return t
}

// tokenSpace is where a token is good.
func tokenSpace(k *client.Token) string {
	if k.Namespace == "" {
		return "all"
	}
	return k.Namespace
}

// expiry is how long something lasts that ends at a moment, in Unix nanoseconds.
func (env *Env) expiry(unixNano int64) string {
	left := time.Unix(0, unixNano).Sub(env.Clock.Now())
	switch {
	case unixNano == 0:
		return "never"
	case left <= 0:
		return "expired"
	}
	return age(left)
}

// newToken is one `cede token create`.
type newToken struct {
	roles []string
	ttl   time.Duration
}

func newTokenCreateCmd(env *Env) *cobra.Command {
	var n newToken
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a token",
		Long: `Make a token; NAME says whose it is. Its secret is shown this once: servers keep a
digest of it alone.`,
		Example: `  cede token create ci --role submit --namespace web
  cede token create laptop --role read --role policy --ttl 24h
  CEDE_TOKEN=$(cede token create ci --role submit -t '{{.SecretID}}')`,
		Args: arguments(1, 1, "one name"),
	}
	f := cmd.Flags()
	f.StringSliceVar(&n.roles, "role", nil, "`ROLE` that it has; may be given several times")
	f.DurationVar(&n.ttl, "ttl", 0, "`TIME` for which it is valid, such as 720h; 0: until it is deleted")
	complete(cmd, "role", roleNames())
	cmd = askingOnce(env, cmd, n.sample, n.make)
	f.Lookup("namespace").Usage = "`NAME` of the one namespace that it is good for (default: all)"
	return cmd
}

// sample is a token as it will be shown, with the fields that it will have.
func (n *newToken) sample(c *connection) any {
	k := &client.Token{AccessorID: "a", SecretID: "s", Roles: n.roles, Namespace: c.namespace}
	if n.ttl > 0 {
		k.ExpiresAt = 1
	}
	return k
}

func roleNames() []string {
	return namesOf(acl.Roles, func(r acl.Role) string { return string(r) })
}

func (n *newToken) make(ctx context.Context, c *connection, args []string) (document, error) {
	if len(n.roles) == 0 {
		return document{}, usagef("add --role, one or several of "+oneOf(roleNames()), "what may the holder of token %q do?", args[0])
	}
	// The environment's namespace is where somebody works, and no wish to bind a token.
	k, err := c.client.Operator().TokenCreate(ctx, &client.TokenCreateRequest{Name: args[0], Roles: n.roles, Namespace: c.namespace, TTL: n.ttl})
	if err != nil {
		return document{}, err
	}
	return document{data: k, names: []string{k.AccessorID}, page: func(p page) {
		p.token(c.env, k)
		p.printf("\nKeep the secret: it is not shown again.\n")
	}}, nil
}

func (p page) token(env *Env, k *client.Token) {
	p.facts("accessor", k.AccessorID, "name", k.Name, "roles", strings.Join(k.Roles, ", "), "namespace", tokenSpace(k),
		"created", env.when(k.CreateTime), "expires", env.expiryDate(k.ExpiresAt), "secret", k.SecretID)
}

// expiryDate is when something ends, and how far that is.
func (env *Env) expiryDate(unixNano int64) string {
	left := env.expiry(unixNano)
	if unixNano == 0 {
		return left
	}
	return moment(unixNano) + " (" + left + ")"
}

func newTokenStatusCmd(env *Env, tokens noun) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status [ACCESSOR]", Short: "Describe a token, without its secret; your own where none is named",
		Example: "  cede token status\n  cede token status 4f2a", Args: arguments(0, 1, "one token"),
	}
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		var k *client.Token
		var err error
		if len(args) == 0 {
			k, err = c.client.Operator().TokenSelf(ctx)
		} else {
			k, err = c.client.Operator().Token(ctx, args[0])
			err = tokens.named(args[0], err)
		}
		if err != nil {
			return document{}, err
		}
		return document{data: k, names: []string{k.AccessorID}, page: func(p page) { p.token(env, k) }}, nil
	})
}

func newTokenDeleteCmd(env *Env, tokens noun) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete ACCESSOR", Short: "Make a token void: whoever holds it is refused from then on",
		Example: "  cede token delete 4f2a",
	}
	return tokens.verb(env, cmd, func(ctx context.Context, c *connection, accessor string) (document, error) {
		k, err := c.client.Operator().Token(ctx, accessor)
		if err == nil {
			err = c.client.Operator().TokenDelete(ctx, k.AccessorID)
		}
		if err != nil {
			return document{}, err
		}
		return said(k, k.AccessorID, "Token %s of %s is void", k.AccessorID, k.Name), nil
	})
}
