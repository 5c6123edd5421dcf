package token

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/sdk/client"
)

// NewCommand returns `cede token` with its subcommands.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	tokens := cmdutil.Resource{Command: "token", Singular: "token", Plural: "tokens", EmptyHint: "`cede token create NAME --role ROLE` creates one", IDField: "accessor"}
	return tokens.Group(&cobra.Command{
		Short: "Create, list and delete access tokens",
		Long: `Create, list and delete access tokens.

If acl.enabled is set, clients authenticate with the secret of a token (CEDE_TOKEN). A
token has roles:

  read        read everything except tokens
  submit      register, plan and stop jobs and bindings; includes read
  operate     manage nodes, budgets, clusters and settings; includes submit
  policy      load, shadow, activate and unload policies
  node        the requests of agents of nodes and member clusters
  management  everything, including tokens

The first server of a cluster writes the first token, which has the role management, to
bootstrap.token in its data directory.`,
		Example: `  cede token create ci --role submit --namespace web --ttl 720h
  cede token list
  cede token delete 4f2a`,
	},
		newTokenCreateCmd(env),
		cmdutil.NewListCmd(env, tokens, cmdutil.ListSpec[*client.Token]{
			Short: "List tokens, without their secrets",
			Get:   func(api *client.Client) cmdutil.Lister[*client.Token] { return api.Operator().Tokens },
			Name:  func(t *client.Token) string { return t.AccessorID },
			Table: func(p cmdutil.Page, list []*client.Token) *term.Table { return tokenTable(p, env, list) },
		}),
		newTokenStatusCmd(env, tokens), newTokenDeleteCmd(env, tokens))
}

func tokenTable(p cmdutil.Page, env *cmdutil.Env, list []*client.Token) *term.Table {
	t := cmdutil.NewTable("ACCESSOR", "NAME", "ROLES", "NAMESPACE", "EXPIRES IN>", "AGE>")
	for _, k := range list {
		t.Row(p.ID(k.AccessorID), k.Name, strings.Join(k.Roles, ", "), tokenSpace(k), formatExpiry(env, k.ExpiresAt), env.Age(k.CreateTime))
	}
	return t
}

// tokenSpace returns the namespace of a token; all if it has none.
func tokenSpace(k *client.Token) string {
	if k.Namespace == "" {
		return "all"
	}
	return k.Namespace
}

// formatExpiry returns the time until a moment in Unix nanoseconds.
func formatExpiry(env *cmdutil.Env, unixNano int64) string {
	left := time.Unix(0, unixNano).Sub(env.Clock.Now())
	switch {
	case unixNano == 0:
		return "never"
	case left <= 0:
		return "expired"
	}
	return cmdutil.FormatAge(left)
}

// newToken holds the flags of `cede token create`.
type newToken struct {
	roles []string
	ttl   time.Duration
}

func newTokenCreateCmd(env *cmdutil.Env) *cobra.Command {
	var n newToken
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a token",
		Long: `Create a token. NAME describes its purpose or owner.

The secret is printed once and cannot be read again: servers store only its hash.`,
		Example: `  cede token create ci --role submit --namespace web
  cede token create laptop --role read --role policy --ttl 24h
  CEDE_TOKEN=$(cede token create ci --role submit -t '{{.SecretID}}')`,
		Args: cmdutil.PositionalArgs(1, 1, "one name"),
	}
	f := cmd.Flags()
	f.StringSliceVar(&n.roles, "role", nil, "`ROLE` of the token; may be repeated")
	f.DurationVar(&n.ttl, "ttl", 0, "lifetime as `DURATION`, such as 720h; 0: unlimited")
	cmdutil.CompleteFlag(cmd, "role", roleNames())
	cmd = cmdutil.OneTimeCommand(env, cmd, n.sample, n.make)
	f.Lookup("namespace").Usage = "`NAME` of the one namespace that it is good for (default: all)"
	return cmd
}

// sample returns a token with the fields of the result, to test a template.
func (n *newToken) sample(c *cmdutil.Connection) any {
	k := &client.Token{AccessorID: "a", SecretID: "s", Roles: n.roles, Namespace: c.Namespace}
	if n.ttl > 0 {
		k.ExpiresAt = 1
	}
	return k
}

func roleNames() []string {
	return cmdutil.NamesOf(acl.Roles, func(r acl.Role) string { return string(r) })
}

func (n *newToken) make(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
	if len(n.roles) == 0 {
		return cmdutil.Document{}, cmdutil.Usagef("add one or more of --role "+cmdutil.JoinOr(roleNames()), "--role is required for token %q", args[0])
	}
	// CEDE_NAMESPACE is ignored here: only the flag restricts a token to a namespace.
	k, err := c.Client.Operator().TokenCreate(ctx, &client.TokenCreateRequest{Name: args[0], Roles: n.roles, Namespace: c.Namespace, TTL: n.ttl})
	if err != nil {
		return cmdutil.Document{}, err
	}
	return cmdutil.Document{Data: k, Names: []string{k.AccessorID}, Page: func(p cmdutil.Page) {
		tokenPage(p, c.Env, k)
		p.Printf("\nStore the secret: it is not shown again.\n")
	}}, nil
}

func tokenPage(p cmdutil.Page, env *cmdutil.Env, k *client.Token) {
	p.Properties("accessor", k.AccessorID, "name", k.Name, "roles", strings.Join(k.Roles, ", "), "namespace", tokenSpace(k),
		"created", env.TimeAndAge(k.CreateTime), "expires", formatExpiryDate(env, k.ExpiresAt), "secret", k.SecretID)
}

// formatExpiryDate returns a time and the duration until then.
func formatExpiryDate(env *cmdutil.Env, unixNano int64) string {
	left := formatExpiry(env, unixNano)
	if unixNano == 0 {
		return left
	}
	return cmdutil.FormatTime(unixNano) + " (" + left + ")"
}

func newTokenStatusCmd(env *cmdutil.Env, tokens cmdutil.Resource) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status [ACCESSOR]", Short: "Describe a token (default: the one in use)",
		Long: `Describe a token: its name, roles, namespace and expiry. Without ACCESSOR it is the token
of this request.

The secret is not shown.`,
		Example: "  cede token status\n  cede token status 4f2a", Args: cmdutil.PositionalArgs(0, 1, "one token"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		var k *client.Token
		var err error
		if len(args) == 0 {
			k, err = c.Client.Operator().TokenSelf(ctx)
		} else {
			k, err = c.Client.Operator().Token(ctx, args[0])
			err = tokens.LookupError(args[0], err)
		}
		if err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.Document{Data: k, Names: []string{k.AccessorID}, Page: func(p cmdutil.Page) { tokenPage(p, env, k) }}, nil
	})
}

func newTokenDeleteCmd(env *cmdutil.Env, tokens cmdutil.Resource) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete ACCESSOR", Short: "Delete a token",
		Long:    `Delete a token. Requests with it are refused from then on.`,
		Example: "  cede token delete 4f2a",
	}
	return tokens.ItemCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, accessor string) (cmdutil.Document, error) {
		k, err := c.Client.Operator().Token(ctx, accessor)
		if err == nil {
			err = c.Client.Operator().TokenDelete(ctx, k.AccessorID)
		}
		if err != nil {
			return cmdutil.Document{}, err
		}
		return cmdutil.MessageDocument(k, k.AccessorID, "Token %s of %s is deleted", k.AccessorID, k.Name), nil
	})
}
