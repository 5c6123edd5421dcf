package app

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/agent"
	"github.com/cede-scheduler/cede/core/agent/driver"
	"github.com/cede-scheduler/cede/core/agent/driver/exec"
	"github.com/cede-scheduler/cede/core/agent/driver/sim"
	"github.com/cede-scheduler/cede/sdk/client"
)

// serverResponseTimeout is the time after which an agent tries another server: a lease
// must be renewed in time even if one server does not respond.
const serverResponseTimeout = 3 * time.Second

// startAgent creates and runs the agent of the node.
func (p *Process) startAgent(ctx context.Context, c *config.Config) error {
	drivers, err := p.drivers(c)
	if err != nil {
		return err
	}
	node, err := agent.Fingerprint(nodeFromConfig(c, p.http.advertised), p.dataDir)
	if err != nil {
		return err
	}
	transport := p.certs.transport()
	p.down.push("connections to servers", func(context.Context) error {
		transport.CloseIdleConnections()
		return nil
	})
	calls := client.Config{
		Address: strings.Join(c.Client.Servers, ","), HTTPClient: &http.Client{Transport: transport}, UserAgent: "cede-agent/" + p.o.Build.Version,
		Silence: serverResponseTimeout,
	}
	if calls.Address == "" {
		calls.Address = p.URL()
	}
	if calls.Token, err = p.nodeToken(ctx, c); err != nil {
		return err
	}
	servers, err := client.New(calls)
	if err != nil {
		return err
	}
	conf := agent.Config{
		Servers: agent.Remote(servers.NodeAgent()), DataDir: p.dataPath("client"), Node: node, Drivers: drivers,
		Logger: p.log, KeepDead: c.Client.KeepDead, StopAll: c.Dev,
	}
	if c.ACL.Enabled {
		p.clientAs = func(token string) (*client.Client, error) {
			as := calls
			as.Token = token
			return client.New(as)
		}
		conf.Authorize = p.authorizeRead
	}
	if pr := c.Client.Pressure; pr.Enabled {
		conf.Pressure = &agent.Pressure{Interval: pr.Interval, MinAvailable: int64(pr.MinAvailable), MaxStall: pr.MaxStall}
	}
	a, err := agent.New(conf)
	if err != nil {
		return err
	}
	p.metrics.registry.MustRegister(allocGauges(a))
	p.runAgent(a)
	if len(c.Client.Servers) > 0 {
		p.watchServerList(servers, c.Client.Servers)
	}
	return nil
}

// drivers returns the enabled drivers of tasks.
func (p *Process) drivers(c *config.Config) (map[string]driver.Driver, error) {
	list := map[string]driver.Driver{}
	if e := c.Client.Drivers.Exec; e.Enabled {
		if err := exec.Limits(); err != nil {
			p.log.Warn("memory and processes of tasks are not limited", "err", err)
		}
		o := exec.Options{
			Supervisor: p.o.Supervisor, User: e.User, Denied: e.DeniedUsers, MemoryLimit: e.MemoryLimit,
			LogSize: int64(e.LogSize), LogKeep: e.LogFiles, Bound: c.Dev,
		}
		if err := separateNamespaces(p, c, &o); err != nil {
			return nil, err
		}
		d, err := exec.New(o)
		if err != nil {
			return nil, err
		}
		list["exec"] = d
	}
	if c.Client.Drivers.Sim.Enabled {
		list["sim"] = sim.Driver{}
	}
	return list, nil
}

// separateNamespaces makes tasks of different namespaces run with different user IDs. It
// requires root. Tasks of a development agent run as its user.
func separateNamespaces(p *Process, c *config.Config, o *exec.Options) error {
	if o.User != "" || c.Dev || os.Geteuid() != 0 {
		return nil
	}
	o.UIDs = exec.UIDRange{First: uint32(c.Client.Drivers.Exec.UIDFirst), Count: uint32(c.Client.Drivers.Exec.UIDCount)}
	if !o.UIDs.Available() {
		o.UIDs, o.User = exec.UIDRange{}, "nobody"
		p.log.Warn("tasks of all namespaces share the user nobody: the user IDs of client.drivers.exec.uid_first do not exist here")
		return nil
	}
	dir := p.dataPath("client")
	o.UIDFile, o.AllocDir = filepath.Join(dir, "uids.json"), filepath.Join(dir, "allocs")
	return os.MkdirAll(dir, 0o711)
}

// nodeFromConfig returns the node as the configuration describes it.
func nodeFromConfig(c *config.Config, address string) agent.Node {
	n := agent.Node{
		Name: c.Name, Address: address, Datacenter: c.Datacenter, Class: c.Client.Class,
		Capacity: c.Client.Resources, Reserved: c.Client.Reserved, Ports: c.Client.Ports,
		Attributes: map[string]string{}, Meta: c.Client.Meta,
	}
	if c.Client.Drivers.Exec.Enabled {
		n.Attributes["driver.exec"] = "1"
	}
	if c.Client.Drivers.Sim.Enabled {
		n.Attributes["driver.sim"] = "1"
	}
	maps.Copy(n.Attributes, c.Client.Attributes)
	for _, t := range c.Client.Taints {
		n.Taints = append(n.Taints, agent.Taint(t))
	}
	for _, d := range c.Client.Devices {
		n.Devices = append(n.Devices, agent.Device(d))
	}
	return n
}

// serverListInterval is the interval at which a node requests the list of servers.
const serverListInterval = time.Minute

// watchServerList updates the node's list of servers from the pool's members,
// followed by the configured ones. If all configured servers are gone, the node still
// reaches those that were added later.
func (p *Process) watchServerList(c *client.Client, configured []string) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(serverListInterval); ; {
			if list := serverURLs(ctx, c); len(list) > 0 {
				if err := c.SetAddresses(mergeServers(list, configured)...); err != nil {
					p.log.Warn("failed to update server addresses", "err", err)
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	p.down.push("news of servers", func(context.Context) error {
		cancel()
		<-done
		return nil
	})
}

// serverURLs returns the URLs of the alive servers as one of them reports, or nil if
// it reports none.
func serverURLs(ctx context.Context, c *client.Client) (list []string) {
	ctx, cancel := context.WithTimeout(ctx, serverListInterval/2)
	defer cancel()
	m, err := c.Status().Members(ctx)
	if err != nil {
		return nil
	}
	for _, one := range m.Members {
		if url := one.Tags["http"]; url != "" && one.Status == "alive" {
			list = append(list, url)
		}
	}
	return list
}

func mergeServers(list, others []string) []string {
	for _, o := range others {
		if !slices.Contains(list, strings.TrimRight(o, "/")) {
			list = append(list, o)
		}
	}
	return list
}

// runAgent runs the agent until the process stops.
func (p *Process) runAgent(a *agent.Agent) {
	p.agent.Store(a)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := a.Run(ctx); err != nil {
			p.fail(err)
		}
	}()
	p.down.push("node", func(ctx context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// authorizeRead reports whether the bearer of a token may read an allocation, as decided
// by the servers.
func (p *Process) authorizeRead(ctx context.Context, token, allocID string) error {
	c, err := p.clientAs(token)
	if err != nil {
		return err
	}
	_, _, err = c.Allocations().Get(ctx, allocID, nil)
	return err
}

// authorizeOperator reports whether the caller may operate this node.
func (p *Process) authorizeOperator(r *http.Request) error {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	c, err := p.clientAs(token)
	if err != nil {
		return err
	}
	self, err := c.Operator().TokenSelf(r.Context())
	if err != nil {
		return err
	}
	for _, role := range self.Roles {
		if role == "operate" || role == "management" {
			return nil
		}
	}
	return &client.Error{StatusCode: http.StatusForbidden, Code: client.CodeForbidden, Message: "a reload needs the role operate"}
}
