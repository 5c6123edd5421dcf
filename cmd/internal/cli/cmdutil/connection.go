package cmdutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/sdk/client"
)

// A Connection holds the flags that select a server, and its client.
type Connection struct {
	Env       *Env
	Addr      string
	Token     string
	caCert    string
	Namespace string
	Client    *client.Client

	stale, consistent bool // flags of commands that read
}

// ConnectionFlags adds the flags that select a server to a command.
func ConnectionFlags(cmd *cobra.Command, env *Env) *Connection {
	c := &Connection{Env: env}
	f := cmd.Flags()
	f.StringVar(&c.Addr, "addr", "", "`URL` of a server, or several URLs separated by commas (CEDE_ADDR; default "+client.DefaultAddress+")")
	f.StringVar(&c.Token, "token", "", "access `TOKEN`, or file:PATH of a file that contains it (CEDE_TOKEN)")
	f.StringVar(&c.caCert, "cacert", "", "`FILE` of the CA certificate of the servers (CEDE_CACERT)")
	f.StringVar(&c.Namespace, "namespace", "", "`NAME` of the namespace; * lists all namespaces (CEDE_NAMESPACE; default default)")
	if readsState(cmd) {
		f.BoolVar(&c.consistent, "consistent", false, "read the latest state, after the leader has verified its leadership")
		f.BoolVar(&c.stale, "stale", false, "read the local state of any server, which may be outdated")
	}
	return c
}

// readsState reports whether a command only reads the state of servers.
func readsState(cmd *cobra.Command) bool {
	return slices.Contains([]string{"list", "status", "history", "explain", "members"}, cmd.Name())
}

// ClientConfig returns the configuration of flags and environment; flags take precedence.
func (c *Connection) ClientConfig() (client.Config, error) {
	conf := client.FromLookup(func(name string) (string, bool) {
		value := c.Env.Getenv(name)
		return value, value != ""
	})
	for _, given := range []struct {
		flag string
		to   *string
	}{{c.Addr, &conf.Address}, {c.Token, &conf.Token}, {c.caCert, &conf.CACert}, {c.Namespace, &conf.Namespace}} {
		if given.flag != "" {
			*given.to = given.flag
		}
	}
	conf.UserAgent = "cede/" + c.Env.Build.Version
	if c.stale && c.consistent {
		return conf, Usagef("remove one of them", "--stale and --consistent are mutually exclusive")
	}
	conf.Stale, conf.Consistent, conf.Heard = c.stale, c.consistent, c.staleWarner()
	if file, ok := strings.CutPrefix(conf.Token, "file:"); ok {
		secret, err := c.Env.ReadSecret(file)
		if err != nil {
			e := AsError(err)
			e.Message = "cannot read the token (--token or CEDE_TOKEN): " + e.Message
			return conf, e
		}
		conf.Token = secret
	}
	return conf, nil
}

// staleAfter is the time without leader contact after which results are reported as
// outdated. It is longer than an election on a working network.
const staleAfter = 5 * time.Second

// staleWarner returns a function that warns once if a server may have missed recent
// changes.
func (c *Connection) staleWarner() func(string, client.QueryMeta) {
	var once sync.Once
	return func(address string, meta client.QueryMeta) {
		text := ""
		switch {
		case meta.LastContact >= staleAfter:
			text = fmt.Sprintf("server %s has had no contact with a leader for %s: the result may be outdated", address, meta.LastContact.Round(time.Second))
		case !meta.KnownLeader:
			text = fmt.Sprintf("server %s has no leader: the result may be outdated", address)
		default:
			return
		}
		once.Do(func() { c.Env.Warn(text) })
	}
}

// ReadSecret reads a file that contains only a secret.
func (env *Env) ReadSecret(name string) (string, error) {
	text, err := env.ReadFile(name, 64<<10)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(text)), nil
}

// ReadFile reads a user's file, up to a size; - is standard input.
func (env *Env) ReadFile(name string, most int64) ([]byte, error) {
	r, err := env.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // read-only
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, ReadError(name, err)
	}
	if int64(len(text)) > most {
		return nil, &Error{
			Exit: ExitUsage, Code: CodeInvalid, Message: fmt.Sprintf("%s is larger than %s", name, FormatBytes(most)),
			Hint: "check that the file is the intended one",
		}
	}
	return text, nil
}

// Dial returns the client, and creates it at the first call.
func (c *Connection) Dial() (*client.Client, error) {
	if c.Client != nil {
		return c.Client, nil
	}
	conf, err := c.ClientConfig()
	if err != nil {
		return nil, err
	}
	c.Client, err = client.New(conf)
	if err != nil {
		hint := "check --addr and CEDE_ADDR, --cacert and CEDE_CACERT"
		if errors.Is(err, os.ErrNotExist) {
			hint = "check the path"
		}
		return nil, Usagef(hint, "%v", err)
	}
	return c.Client, nil
}

// ResolveNamespace returns the namespace of a file, or else the requested one.
func (c *Connection) ResolveNamespace(written string) string {
	return cmp.Or(written, c.Client.Namespace(), "default")
}

// QueryOptions returns the options of a read in the requested namespace.
func (c *Connection) QueryOptions() *client.QueryOptions { return &client.QueryOptions{} }

// ServerError returns the error of a server in the form of the command line.
func ServerError(e *client.Error) *Error {
	own := &Error{Exit: ExitError, Code: e.Code, Message: e.Message, Hint: e.Hint, Err: e}
	if own.Message == "" {
		own.Message = "the server returned " + e.Code
	}
	if len(e.Details) > 0 {
		own.Details = e.Details
		own.Lines = DetailLines(e.Details)
		own.Message = withoutDetails(own.Message, own.Lines)
		// The rest names the object alone: the lines above hold the reasons.
		if own.Message != e.Message && e.Code == client.CodeInvalid && !strings.HasPrefix(own.Message, "invalid ") {
			own.Message = "invalid " + own.Message
		}
	}
	switch e.Code {
	case client.CodeInvalid:
		own.Exit = ExitUsage
	case client.CodeNotFound:
		own.Exit = ExitNotFound
	case client.CodeConflict:
		own.Exit = ExitConflict
	case client.CodeNoLeader:
		own.Exit = ExitUnreachable
		own.Hint = strings.ReplaceAll(own.Hint, "stale=true", "--stale") // name of the parameter on the command line
		own.Hint = cmp.Or(own.Hint, "wait for an election, or start more servers; `cede operator raft` shows them")
	case client.CodeUnknownOutcome:
		// The server names a header, which commands other than cede job run do not offer.
		own.Hint = "check whether it took effect before the command is repeated"
	case client.CodeUnauthenticated:
		own.Hint = cmp.Or(own.Hint, "set CEDE_TOKEN, or use --token file:PATH")
	}
	return own
}

// unreachableError returns the error of a server that cannot be reached.
func unreachableError(e *client.UnreachableError) *Error {
	return &Error{
		Exit: ExitUnreachable, Code: CodeUnreachable, Err: e,
		Message: fmt.Sprintf("no server reached at %s: %v", e.Address, RootCause(e.Err)),
		Hint:    "check that the server runs, and --addr or CEDE_ADDR; `cede agent --dev` starts a server for evaluation",
	}
}

// RootCause returns the innermost error, without the URL and operation around it.
func RootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// InterruptError returns the error of ctx if ctx was cancelled, otherwise err.
func InterruptError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return err
}

// RequestedNamespace returns the namespace of the flag or the environment.
func (c *Connection) RequestedNamespace() string {
	return cmp.Or(c.Namespace, c.Env.Getenv("CEDE_NAMESPACE"))
}
