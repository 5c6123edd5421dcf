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

// Client sends requests to servers. Create one with New and share it.
type Client struct {
	addresses        atomic.Pointer[[]string]
	preferred        atomic.Uint32 // index in addresses of the server that responded last
	reached          atomic.Bool   // the search for a responding server was done
	http             *http.Client
	token            string
	defaultNS        string
	retries          int
	retryDelay       time.Duration
	electionPatience time.Duration // how long requests are repeated, beyond retries, while servers elect a leader
	silence          time.Duration // how long one server may be silent before another is tried; 0: unlimited
	userAgent        string
	stale            bool // default for reads
	consistent       bool
	heard            func(string, QueryMeta) // may be nil
}

// New returns a client. It reads the files of the configuration and sends no request.
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
		return nil, errors.New("stale and consistent reads exclude each other")
	}
	c.addresses.Store(&addresses)
	switch {
	case c.retries == 0:
		c.retries, c.electionPatience = 3, electionPatience
	case c.retries < 0:
		c.retries = 0
	}
	if c.retryDelay <= 0 {
		c.retryDelay = 200 * time.Millisecond
	}
	c.userAgent = cmp.Or(c.userAgent, "cede-client")
	return c, nil
}

// Address returns the address of the server that is tried first.
func (c *Client) Address() string {
	list := *c.addresses.Load()
	return list[int(c.preferred.Load())%len(list)]
}

// SetAddresses replaces the servers, as in Config.Address. It may be called while
// requests are in flight. If the server that responded last is among them, it is
// tried first.
func (c *Client) SetAddresses(urls ...string) error {
	conf := Config{Address: strings.Join(urls, ",")}
	if len(urls) == 0 {
		return errors.New("at least one server is required")
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

// Namespace returns the default namespace of requests; "" means the server's default.
func (c *Client) Namespace() string { return c.defaultNS }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Jobs returns the calls for jobs.
func (c *Client) Jobs() Jobs { return Jobs{c} }

// Allocations returns the calls for allocations.
func (c *Client) Allocations() Allocations { return Allocations{c} }

// Evaluations returns the calls for evaluations.
func (c *Client) Evaluations() Evaluations { return Evaluations{c} }

// Namespaces returns the calls for namespaces.
func (c *Client) Namespaces() Namespaces { return Namespaces{c} }

// Nodes returns the calls for nodes.
func (c *Client) Nodes() Nodes { return Nodes{c} }

// NodeAgent returns the calls of a node's agent.
func (c *Client) NodeAgent() NodeAgent { return NodeAgent{c} }

// Scheduler returns the calls for the scheduler configuration.
func (c *Client) Scheduler() Scheduler { return Scheduler{c} }

// PriorityClasses returns the calls for priority classes.
func (c *Client) PriorityClasses() PriorityClasses { return PriorityClasses{c} }

// Budgets returns the calls for disruption budgets.
func (c *Client) Budgets() Budgets { return Budgets{c} }

// Clusters returns the calls for member clusters.
func (c *Client) Clusters() Clusters { return Clusters{c} }

// MemberAgent returns the calls of a member cluster's agent.
func (c *Client) MemberAgent() MemberAgent { return MemberAgent{c} }

// Bindings returns the calls for bindings.
func (c *Client) Bindings() Bindings { return Bindings{c} }

// Policies returns the calls for policies.
func (c *Client) Policies() Policies { return Policies{c} }

// Events returns the calls for event streams.
func (c *Client) Events() EventStreams { return EventStreams{c} }

// Operator returns the calls for operators.
func (c *Client) Operator() Operator { return Operator{c} }

// Status returns the calls for the status of servers.
func (c *Client) Status() Status { return Status{c} }
