package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/sdk/client"
)

// allocLogs is one `cede alloc logs`.
type allocLogs struct {
	env    *Env
	conn   *connection
	task   string
	stderr bool
	follow bool
	tail   int64
}

func newAllocLogsCmd(env *Env) *cobra.Command {
	l := &allocLogs{env: env}
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Print what an allocation wrote",
		Long: `Print what an allocation wrote to standard output, or with --stderr to standard
error. The agent of its node is asked, so its address must be reachable from here.`,
		Example: "  cede alloc logs 9d21\n  cede alloc logs 9d21 --task server --stderr -f\n  cede alloc logs 9d21 --tail 2000",
		Args:    arguments(1, 1, "one allocation"),
	}
	l.conn = serverFlags(cmd, env)
	f := cmd.Flags()
	f.StringVar(&l.task, "task", "", "what this `TASK` wrote (default: the group's only one)")
	f.BoolVar(&l.stderr, "stderr", false, "standard error in place of standard output")
	f.BoolVarP(&l.follow, "follow", "f", false, "go on until the task ends")
	f.Int64Var(&l.tail, "tail", 0, "begin `N` bytes before the end")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if l.tail < 0 {
			return usagef("write a number of bytes", "--tail %d is negative", l.tail)
		}
		return l.run(cmd.Context(), args[0])
	}
	return cmd
}

func (l *allocLogs) run(ctx context.Context, id string) error {
	a, err := l.conn.findAlloc(ctx, id)
	if err != nil {
		return err
	}
	node, _, err := l.conn.client.Nodes().Get(ctx, a.NodeID, nil)
	if err != nil {
		return notFound(interruptedBy(ctx, err), "node", a.NodeID, "the node is gone, and what ran there with it")
	}
	if node.HTTPAddr == "" {
		return &Error{
			Exit: ExitError, Code: codeError, Message: fmt.Sprintf("the agent of node %s has no HTTP address", node.ID),
			Hint: "set one in the agent's configuration, and restart it",
		}
	}
	address, err := l.address(node.HTTPAddr, a.ID)
	if err != nil {
		return err
	}
	return l.copy(ctx, node, address)
}

// address is where the agent has the log. An address without a scheme is spoken
// to as the servers are.
func (l *allocLogs) address(agent, alloc string) (string, error) {
	if !strings.Contains(agent, "://") {
		scheme := "http://"
		if strings.HasPrefix(l.conn.client.Address(), "https://") {
			scheme = "https://"
		}
		agent = scheme + agent
	}
	u, err := url.Parse(agent)
	if err != nil {
		return "", &Error{Exit: ExitError, Code: codeError, Message: fmt.Sprintf("the agent's address %q is no URL", agent), Hint: "correct it in the agent's configuration"}
	}
	q := url.Values{"stream": {"stdout"}}
	if l.stderr {
		q.Set("stream", "stderr")
	}
	if l.task != "" {
		q.Set("task", l.task)
	}
	if l.follow {
		q.Set("follow", "true")
	}
	if l.tail > 0 {
		q.Set("offset", strconv.FormatInt(-l.tail, 10))
	}
	u = u.JoinPath("v1", "allocation", alloc, "logs")
	u.RawQuery = q.Encode()
	return u.String(), nil
}

func (l *allocLogs) copy(ctx context.Context, node *client.Node, address string) error {
	sender, err := l.conn.sender()
	if err != nil {
		return err
	}
	defer sender.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := sender.Do(r)
	if err != nil {
		return cmpInterrupted(ctx, &Error{
			Exit: ExitUnreachable, Code: codeUnreachable, err: err,
			Message: fmt.Sprintf("the agent of node %s was not reached at %s: %v", node.ID, node.HTTPAddr, rootCause(err)),
			Hint:    "logs are the node's own: is its address reachable from here?",
		})
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if resp.StatusCode != http.StatusOK {
		return agentError(resp)
	}
	if _, err := io.Copy(l.env.Stdout, resp.Body); err != nil {
		return cmpInterrupted(ctx, writeError("the log", err))
	}
	return nil
}

// cmpInterrupted is err, unless the command was interrupted meanwhile.
func cmpInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// agentError is what an agent answered instead of a log.
func agentError(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	e := &client.Error{}
	if json.Unmarshal(body, e) != nil || e.Code == "" {
		e = &client.Error{Code: client.CodeInternal, Message: fmt.Sprintf("the agent answered %s", resp.Status)}
		if resp.StatusCode == http.StatusNotFound {
			e.Code = client.CodeNotFound
		}
	}
	return serverError(e)
}

// sender sends to agents. The token stays at home: it is for servers.
func (c *connection) sender() (*http.Client, error) {
	conf, err := c.config()
	if err != nil {
		return nil, err
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultClient, nil
	}
	transport = transport.Clone()
	if conf.CACert != "" {
		text, err := c.env.readAll(conf.CACert, 1<<20)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) // the client has used it before
	}
	return &http.Client{Transport: transport}, nil
}
