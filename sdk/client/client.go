package client

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Client asks servers. Make one by New and share it.
type Client struct {
	addresses  atomic.Pointer[[]string]
	preferred  atomic.Uint32 // position in addresses of the server that answered last
	reached    atomic.Bool   // it was looked which of several servers answers
	http       *http.Client
	token      string
	defaultNS  string
	retries    int
	retryDelay time.Duration
	patience   time.Duration // while servers elect a leader, beyond retries
	silence    time.Duration // of one server, before another is asked; 0: no limit
	userAgent  string
	stale      bool // of reads that do not say
	consistent bool
	heard      func(string, QueryMeta) // may be nil
}

// New returns a client. It reads the configuration's files, and asks nobody.
func New(conf Config) (*Client, error) {
	addresses, err := conf.addresses()
	if err != nil {
		return nil, err
	}
	sender, err := conf.httpClient()
	if err != nil {
		return nil, err
	}
	c := &Client{
		http: sender, token: conf.Token, defaultNS: conf.Namespace,
		retries: conf.Retries, retryDelay: conf.RetryDelay, silence: max(cmp.Or(conf.Silence, defaultSilence), 0), userAgent: conf.UserAgent,
		stale: conf.Stale, consistent: conf.Consistent, heard: conf.Heard,
	}
	if c.stale && c.consistent {
		return nil, errors.New("reads are stale or consistent, not both")
	}
	c.addresses.Store(&addresses)
	switch {
	case c.retries == 0:
		c.retries, c.patience = 3, electionPatience
	case c.retries < 0:
		c.retries = 0
	}
	if c.retryDelay <= 0 {
		c.retryDelay = 200 * time.Millisecond
	}
	if c.userAgent == "" {
		c.userAgent = "cede-client"
	}
	return c, nil
}

// Address is the server that is asked first.
func (c *Client) Address() string {
	list := *c.addresses.Load()
	return list[int(c.preferred.Load())%len(list)]
}

// SetAddresses replaces the servers to ask, as in Config.Address, while requests go
// on. The one that answered last is asked first if it is among them.
func (c *Client) SetAddresses(urls ...string) error {
	conf := Config{Address: strings.Join(urls, ",")}
	if len(urls) == 0 {
		return errors.New("no server to ask")
	}
	list, err := conf.addresses()
	if err != nil {
		return err
	}
	at := max(slices.Index(list, c.Address()), 0)
	c.addresses.Store(&list)
	c.preferred.Store(uint32(at))
	return nil
}

// Namespace is that of requests that name none; "": the server's default.
func (c *Client) Namespace() string { return c.defaultNS }

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Jobs is what can be done with jobs.
func (c *Client) Jobs() Jobs { return Jobs{c} }

// Allocations is what can be done with allocations.
func (c *Client) Allocations() Allocations { return Allocations{c} }

// Evaluations is what can be done with evaluations.
func (c *Client) Evaluations() Evaluations { return Evaluations{c} }

// Namespaces is what can be done with namespaces.
func (c *Client) Namespaces() Namespaces { return Namespaces{c} }

// Nodes is what can be done with nodes.
func (c *Client) Nodes() Nodes { return Nodes{c} }

// NodeAgent is what the agent of a node does.
func (c *Client) NodeAgent() NodeAgent { return NodeAgent{c} }

// Scheduler is the configuration of scheduling.
func (c *Client) Scheduler() Scheduler { return Scheduler{c} }

// PriorityClasses is what can be done with priority classes.
func (c *Client) PriorityClasses() PriorityClasses { return PriorityClasses{c} }

// Budgets is what can be done with disruption budgets.
func (c *Client) Budgets() Budgets { return Budgets{c} }

// Clusters is what can be done with member clusters.
func (c *Client) Clusters() Clusters { return Clusters{c} }

// MemberAgent is what the agent of a member cluster does.
func (c *Client) MemberAgent() MemberAgent { return MemberAgent{c} }

// Bindings is what can be done with bindings.
func (c *Client) Bindings() Bindings { return Bindings{c} }

// Policies is what can be done with policies.
func (c *Client) Policies() Policies { return Policies{c} }

// Events is what happens.
func (c *Client) Events() EventStreams { return EventStreams{c} }

// Operator is what keeps a cluster well.
func (c *Client) Operator() Operator { return Operator{c} }

// Status is how a server does.
func (c *Client) Status() Status { return Status{c} }
