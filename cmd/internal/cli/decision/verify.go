package decision

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/certificate"
	"github.com/cede-scheduler/cede/plugins/bundle"
)

// description describes a certificate in JSON.
type description struct {
	File       string
	ServerID   string
	Release    string
	Key        string
	Trusted    bool // Key is one of --key
	StateIndex uint64
	Now        int64
	Calls      int
	Policies   []policyDescription
	Decision   json.RawMessage
}

type policyDescription struct{ Name, Version, Digest, Kind string }

func describe(file string, d *certificate.Document, key string) *description {
	v := &description{
		File: file, ServerID: d.ServerID, Release: d.Release, Key: key, StateIndex: d.StateIndex, Now: d.Now, Calls: len(d.Calls), Decision: d.Decision,
	}
	for i := range d.Policies {
		p := &d.Policies[i]
		v.Policies = append(v.Policies, policyDescription{p.Name, p.Version, p.Digest, p.Kind})
	}
	return v
}

func newVerifyCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "verify FILE",
		Short:       "Verify a certificate of a decision",
		Annotations: cmdutil.ExitCodes("8 the certificate is not valid"),
		Long: `Verify a certificate: its signature, and every call of a policy, which is made again and
must have the same answer, bit for bit. A WebAssembly module runs from the certificate, in
its sandbox and within its limits. A built-in policy must have the same version of its
rules in this release.

Without --key and --addr, any key may have signed it; its ID is printed. With --addr, the
keys of all servers that the pool has had are read from a server and trusted. The rules by
which cede used the answers are not applied again: the record of the decision states their
result. Without --addr no server is contacted, whatever the environment contains.`,
		Example: "  cede decision verify r1.cert --key pool.pub\n  cede decision verify r1.cert --addr http://127.0.0.1:4646",
		Args:    cmdutil.PositionalArgs(1, 1, "one certificate"),
	}
	out, conn := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env)
	keys := cmd.Flags().StringArray("key", nil, "trust only the public keys in `FILE`; repeatable")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		roots, err := bundle.ReadRoots(*keys...)
		if err != nil {
			return &cmdutil.Error{Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: cmdutil.FileMessage(err), Hint: "`cede decision key -w FILE` writes the key of a server", Err: err}
		}
		if conn.Addr != "" {
			published, err := poolKeys(cmd.Context(), conn)
			if err != nil {
				return err
			}
			roots = append(roots, published...)
		}
		b, err := env.ReadFile(args[0], certificate.MaxContent)
		if err != nil {
			return err
		}
		d, key, err := certificate.Read(b)
		if err != nil {
			return invalid(args[0], err, "do not rely on the file: export the decision again")
		}
		v := describe(args[0], d, certificate.KeyID(key))
		if v.Trusted = trusts(roots, key); len(roots) > 0 && !v.Trusted {
			return invalid(args[0], fmt.Errorf("signed by %s, which is not one of the trusted keys", v.Key), "`cede decision key --all` prints the keys of a pool; add them with --key if you trust that pool")
		}
		if err := run(cmd.Context(), env, d); err != nil {
			return invalid(args[0], cmdutil.InterruptError(cmd.Context(), err), "a built-in policy requires a release with the same version of its rules; otherwise, do not rely on the file")
		}
		return out.Show(cmdutil.Document{Data: v, Names: []string{args[0]}, Page: v.page})
	}
	return cmd
}

// poolKeys reads the keys of all servers that a pool has had.
func poolKeys(ctx context.Context, conn *cmdutil.Connection) (roots bundle.Roots, err error) {
	api, err := conn.Dial()
	if err != nil {
		return nil, err
	}
	keys, _, err := api.Allocations().DecisionKeys(ctx, conn.QueryOptions())
	if err != nil {
		return nil, cmdutil.InterruptError(ctx, err)
	}
	if len(keys) == 0 {
		return nil, &cmdutil.Error{
			Exit: cmdutil.ExitError, Code: cmdutil.CodeError, Message: "the pool has published no keys",
			Hint: "every server publishes its key when all servers run this release; use --key FILE until then",
		}
	}
	return bundle.ParseRoots([]byte(joinKeys(keys)))
}

func trusts(roots bundle.Roots, key ed25519.PublicKey) bool {
	for _, root := range roots {
		if root.Equal(key) {
			return true
		}
	}
	return false
}

// run makes the calls again.
func run(ctx context.Context, env *cmdutil.Env, d *certificate.Document) (err error) {
	loader := env.Policies.WithLog(nil)
	defer func() { err = errors.Join(err, loader.Close()) }()
	host, err := loader.ForServer(policies.ServerOptions{})
	if err != nil {
		return err
	}
	return certificate.Verify(ctx, d, host)
}

// invalid returns the error of a certificate that is not valid.
func invalid(file string, err error, hint string) error {
	if e, ok := errors.AsType[*cmdutil.Error](err); ok {
		return e
	}
	return &cmdutil.Error{
		Exit: cmdutil.ExitCheck, Code: cmdutil.CodeCheck, Message: fmt.Sprintf("%s: %v", file, err),
		Hint: hint, Err: err,
	}
}

func (v *description) page(p cmdutil.Page) {
	p.Printf("%s is valid: %s of policies were made again, with the same answers\n", v.File, cmdutil.Count(v.Calls, "call", "calls"))
	key := v.Key + ", which is trusted"
	if !v.Trusted {
		key = v.Key + "; add --key to compare it with a trusted one"
	}
	p.Properties("server", v.ServerID, "release", v.Release, "signed by", key, "state index", fmt.Sprint(v.StateIndex))
	p.Title("Policies")
	t := cmdutil.NewTable("NAME", "VERSION", "KIND")
	for _, x := range v.Policies {
		t.Row(x.Name, p.ID(x.Version), x.Kind)
	}
	p.Table(t)
}
