package cli

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

// connection is how a command reaches a server.
type connection struct {
	env       *Env
	addr      string
	token     string
	caCert    string
	namespace string
	client    *client.Client

	stale, consistent bool // of commands that read
}

// serverFlags gives a command what it needs to ask a server.
func serverFlags(cmd *cobra.Command, env *Env) *connection {
	c := &connection{env: env}
	f := cmd.Flags()
	f.StringVar(&c.addr, "addr", "", "`URL` of a server, or several separated by commas (CEDE_ADDR; default "+client.DefaultAddress+")")
	f.StringVar(&c.token, "token", "", "`TOKEN` to ask with, or file:PATH of a file that holds it (CEDE_TOKEN)")
	f.StringVar(&c.caCert, "cacert", "", "`FILE` of the authority that signed the servers' certificates (CEDE_CACERT)")
	f.StringVar(&c.namespace, "namespace", "", "`NAME` of the namespace, * for all where lists allow it (CEDE_NAMESPACE; default default)")
	if readsState(cmd) {
		f.BoolVar(&c.consistent, "consistent", false, "read once the leader made sure that it still leads: nothing is older than the question")
		f.BoolVar(&c.stale, "stale", false, "read what a server has, however old, also where no leader is known")
	}
	return c
}

// readsState is whether a command shows what servers have, and changes nothing.
func readsState(cmd *cobra.Command) bool {
	return slices.Contains([]string{"list", "status", "history", "explain", "members"}, cmd.Name())
}

// config is what the flags and the environment say; flags go first.
func (c *connection) config() (client.Config, error) {
	conf := client.FromLookup(func(name string) (string, bool) {
		value := c.env.Getenv(name)
		return value, value != ""
	})
	for _, given := range []struct {
		flag string
		to   *string
	}{{c.addr, &conf.Address}, {c.token, &conf.Token}, {c.caCert, &conf.CACert}, {c.namespace, &conf.Namespace}} {
		if given.flag != "" {
			*given.to = given.flag
		}
	}
	conf.UserAgent = "cede/" + c.env.Build.Version
	if c.stale && c.consistent {
		return conf, usagef("leave one of them out", "--stale and --consistent exclude each other")
	}
	conf.Stale, conf.Consistent, conf.Heard = c.stale, c.consistent, c.aged()
	if file, ok := strings.CutPrefix(conf.Token, "file:"); ok {
		secret, err := c.env.secret(file)
		if err != nil {
			e := asError(err)
			e.Message = "the token (--token or CEDE_TOKEN): " + e.Message
			return conf, e
		}
		conf.Token = secret
	}
	return conf, nil
}

// oldContact is for how long a server may have heard no leader before what it says is
// told to be old: longer than any election takes on a network that works.
const oldContact = 5 * time.Second

// aged warns once of answers by a server that may have missed what happened since.
func (c *connection) aged() func(string, client.QueryMeta) {
	var once sync.Once
	return func(address string, meta client.QueryMeta) {
		text := ""
		switch {
		case meta.LastContact >= oldContact:
			text = fmt.Sprintf("server %s has heard no leader for %s: this may be old", address, meta.LastContact.Round(time.Second))
		case !meta.KnownLeader:
			text = fmt.Sprintf("server %s knows no leader: this may be old", address)
		default:
			return
		}
		once.Do(func() { c.env.warn(text) })
	}
}

// secret reads a file that holds a secret and nothing else.
func (env *Env) secret(name string) (string, error) {
	text, err := env.readAll(name, 64<<10)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(text)), nil
}

// readAll reads a file that the user named, up to a size; - is standard input.
func (env *Env) readAll(name string, most int64) ([]byte, error) {
	r, err := env.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, unreadable(name, err)
	}
	if int64(len(text)) > most {
		return nil, &Error{
			Exit: ExitUsage, Code: codeInvalid, Message: fmt.Sprintf("%s is larger than %s", name, size(most)),
			Hint: "check that this is the file that is meant",
		}
	}
	return text, nil
}

// dial makes the client.
func (c *connection) dial() (*client.Client, error) {
	if c.client != nil {
		return c.client, nil
	}
	conf, err := c.config()
	if err != nil {
		return nil, err
	}
	c.client, err = client.New(conf)
	if err != nil {
		hint := "check --addr and CEDE_ADDR, --cacert and CEDE_CACERT"
		if errors.Is(err, os.ErrNotExist) {
			hint = "check the path"
		}
		return nil, usagef(hint, "%v", err)
	}
	return c.client, nil
}

// namespaceOf is the namespace that a file names, or else the one that was asked
// for.
func (c *connection) namespaceOf(written string) string {
	return cmp.Or(written, c.client.Namespace(), "default")
}

// query is a read in the namespace that was asked for.
func (c *connection) query() *client.QueryOptions { return &client.QueryOptions{} }

// serverError is what a server answered instead of a result.
func serverError(e *client.Error) *Error {
	own := &Error{Exit: ExitError, Code: e.Code, Message: e.Message, Hint: e.Hint, err: e}
	if own.Message == "" {
		own.Message = "the server answered " + e.Code
	}
	if len(e.Details) > 0 {
		own.Details = e.Details
		own.lines = detailLines(e.Details)
		own.Message = withoutDetails(own.Message, own.lines)
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
		own.Hint = strings.ReplaceAll(own.Hint, "stale=true", "--stale") // as it is said here
		if own.Hint == "" {
			own.Hint = "wait for an election, or start more servers; `cede operator raft` shows them"
		}
	case client.CodeUnauthenticated:
		if own.Hint == "" {
			own.Hint = "give a token: CEDE_TOKEN, or --token file:PATH"
		}
	}
	return own
}

// unreachable is a server that could not be asked.
func unreachable(e *client.UnreachableError) *Error {
	return &Error{
		Exit: ExitUnreachable, Code: codeUnreachable, err: e,
		Message: fmt.Sprintf("no server reached at %s: %v", e.Address, rootCause(e.Err)),
		Hint:    "is it running? --addr or CEDE_ADDR says where; `cede agent --dev` starts one to try",
	}
}

// rootCause is the innermost error: what the system said, without the URL and
// the operation that are wrapped around it.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// interruptedBy is the error of a call that ended because the command did.
func interruptedBy(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return err
}
