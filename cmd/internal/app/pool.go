package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/api"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server/membership"
	"github.com/cede-scheduler/cede/gossip"
)

// poolMember connects this server to the other servers of its pool.
type poolMember struct {
	server  *serverComponents
	id      string
	rpc     *rpc.Listener
	client  *rpc.Client
	gossip  *gossip.Pool // nil if this server runs without gossip
	changed chan struct{}

	rpcConfig rpc.Config
	asked     atomic.Int64 // number of status requests from other servers

	mu   sync.Mutex
	tags gossip.Tags
}

// openRPC listens for other servers. If TLS is configured, it identifies them by
// certificate.
func (s *serverComponents) openRPC(c *config.Config) error {
	l, err := net.Listen("tcp", c.Listen.RPC)
	if err != nil {
		return listenError("listen.rpc", err)
	}
	s.pool = &poolMember{server: s, id: s.id, changed: make(chan struct{}, 1)}
	if s.pool.tags.ClusterID, err = s.store.ClusterID(); err != nil {
		return errors.Join(err, l.Close())
	}
	conf := rpc.Config{ID: s.pool.identity, Credentials: s.env.certs.serverToServer(c), Logger: s.env.log}
	s.pool.rpcConfig = conf
	s.pool.rpc = rpc.Listen(l, advertise(c.Advertise.RPC, l.Addr().String()), conf)
	s.pool.client = rpc.NewClient(conf, s.pool.rpcAddress)
	s.env.down.push("RPC", func(context.Context) error {
		s.pool.client.Close()
		return s.pool.rpc.Close()
	})
	return nil
}

// identity returns the identity of this server.
func (t *poolMember) identity() rpc.Identity {
	t.mu.Lock()
	defer t.mu.Unlock()
	return rpc.Identity{ServerID: t.id, ClusterID: t.tags.ClusterID}
}

// openGossip joins the gossip pool.
func (s *serverComponents) openGossip(c *config.Config, advertised string) error {
	t := s.pool
	keys, err := c.Gossip.KeyList()
	if err != nil {
		return fmt.Errorf("gossip.keys: %w", err)
	}
	t.mu.Lock()
	t.tags.Name = shortName(c.Name)
	t.tags.Region, t.tags.Datacenter, t.tags.Raft, t.tags.RPC = c.Region, c.Datacenter, t.rpc.Addr(), t.rpc.Addr()
	t.tags.HTTP, t.tags.Build = s.env.certs.scheme()+"://"+advertised, s.env.o.Build.Version
	t.tags.Oldest, t.tags.Newest, t.tags.Expect = replication.Oldest, replication.Newest, c.Server.Founders()
	tags := t.tags
	t.mu.Unlock()
	conf := gossip.Config{
		ID: t.id, Cluster: c.Gossip.Name + "." + c.Region, Bind: c.Listen.Gossip, Advertise: advertise(c.Advertise.Gossip, c.Listen.Gossip),
		Tags: tags, Keys: keys, Seeds: c.Server.Join, Logger: s.env.log, Timing: gossip.Timing{Rejoin: 5 * time.Second},
		OnDuplicateID: t.failOnDuplicateID,
	}
	if c.Server.BootstrapExpect == 1 && len(c.Server.Join) == 0 {
		conf.Timing.Rejoin = 30 * time.Second
	}
	if conf.Advertise == conf.Bind {
		conf.Advertise = ""
	}
	if t.gossip, err = gossip.Start(conf); err != nil {
		return fmt.Errorf("listen.gossip: %w", err)
	}
	done := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(done)
		t.relayGossip(stop)
	}()
	s.env.down.push("gossip", func(context.Context) error {
		close(stop)
		<-done
		return t.gossip.Stop(gossipStopTimeout)
	})
	return nil
}

// relayGossip coalesces gossip events into one signal.
func (t *poolMember) relayGossip(stop <-chan struct{}) {
	for {
		select {
		case <-t.gossip.Events():
			select {
			case t.changed <- struct{}{}:
			default:
			}
		case <-stop:
			return
		}
	}
}

// openPool serves the RPCs of other servers.
func (s *serverComponents) openPool() {
	t := s.pool
	answers := t.rpc.Serve(statusCounter{s.server.RPCHandler(), &t.asked})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t.forgetFailedMembers(stop)
	}()
	s.env.down.push("calls of other servers", func(context.Context) error {
		close(stop)
		<-done
		answers.Close()
		return nil
	})
}

// shortName truncates the name of a server if it exceeds the limit of a gossip
// message.
func shortName(name string) string {
	const most = 64
	return strings.ToValidUTF8(name[:min(len(name), most)], "")
}

// poolMember is the server's view of the pool.
var _ membership.Gossip = (*poolMember)(nil)

// Members lists the pool.
func (t *poolMember) Members() []membership.Member {
	list := t.gossip.Members()
	out := make([]membership.Member, len(list))
	for i, m := range list {
		out[i] = membership.Member{
			ID: m.ID, Since: m.Since, ClusterID: m.Tags.ClusterID, Raft: m.Tags.Raft, RPC: m.Tags.RPC, HTTP: m.Tags.HTTP,
			Build:  m.Tags.Build,
			Expect: m.Tags.Expect, NonVoter: m.Tags.NonVoter, Status: statuses[m.Status],
		}
	}
	return out
}

var statuses = map[gossip.Status]membership.MemberStatus{
	gossip.Alive: membership.MemberAlive, gossip.Failed: membership.MemberFailed, gossip.Left: membership.MemberLeft,
}

// Changed receives a value if Members may have changed.
func (t *poolMember) Changed() <-chan struct{} { return t.changed }

// SetCluster stores the cluster ID of this server in memory and on disk, because
// other members may report it after a restart.
func (t *poolMember) SetCluster(id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was := t.tags.ClusterID; was != id {
		if was != "" {
			t.server.env.log.Warn("cluster ID changed: a snapshot of another cluster was restored", "before", was, "after", id)
		}
		if err := t.server.store.StoreClusterID(id); err != nil {
			return err
		}
	}
	t.tags.ClusterID = id
	return t.gossip.SetTags(t.tags)
}

// Join joins the pool through other members.
func (t *poolMember) Join(addrs ...string) (int, error) { return t.gossip.Join(addrs...) }

// Forget removes a member that is not alive.
func (t *poolMember) Forget(id string) { t.gossip.Forget(id) }

// leaveTimeout limits the time until other members have received the leave message.
const leaveTimeout = 5 * time.Second

// gossipStopTimeout limits the time until other members have received that this server
// stops.
const gossipStopTimeout = 2 * time.Second

// Leave removes this server from the pool for good.
func (t *poolMember) Leave(context.Context) error { return t.gossip.Leave(leaveTimeout) }

// Keyring changes the keys that encrypt gossip until the next start, which uses those of
// the configuration.
func (t *poolMember) Keyring(verb rpc.KeyVerb, key []byte) ([]string, error) {
	var err error
	switch verb {
	case rpc.KeyInstall:
		err = t.gossip.InstallKey(key)
	case rpc.KeyUse:
		err = t.gossip.UseKey(key)
	case rpc.KeyRemove:
		err = t.gossip.RemoveKey(key)
	case rpc.KeyList:
	}
	var digests []string
	for _, k := range t.gossip.Keys() {
		sum := sha256.Sum256(k)
		digests = append(digests, hex.EncodeToString(sum[:8]))
	}
	return digests, err
}

// updateKeys replaces the keys by those of a reloaded configuration.
func (t *poolMember) updateKeys(keys [][]byte) error {
	if t == nil || t.gossip == nil {
		return nil
	}
	had := t.gossip.Keys()
	if (len(had) == 0) != (len(keys) == 0) {
		return errors.New("gossip.keys: encryption cannot be enabled or disabled while the process runs: restart the process")
	}
	for _, k := range keys {
		if err := t.gossip.InstallKey(k); err != nil {
			return err
		}
	}
	if len(keys) == 0 {
		return nil
	}
	if err := t.gossip.UseKey(keys[0]); err != nil {
		return err
	}
	for _, old := range had {
		if !contains(keys, old) {
			if err := t.gossip.RemoveKey(old); err != nil {
				return err
			}
		}
	}
	return nil
}

func contains(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}

// member returns the member with an ID.
func (t *poolMember) member(id string) (gossip.Member, bool) {
	if t.gossip == nil {
		return gossip.Member{}, false
	}
	for _, m := range t.gossip.Members() {
		if m.ID == id {
			return m, true
		}
	}
	return gossip.Member{}, false
}

// rpcAddress returns the RPC address of a server.
func (t *poolMember) rpcAddress(id string) (string, bool) {
	m, ok := t.member(id)
	if ok && m.Tags.RPC != "" {
		return m.Tags.RPC, true
	}
	// Gossip has not received the member yet, but the log has its Raft address, which
	// is the RPC address.
	if log := t.server.log; log != nil {
		for _, s := range log.Stats().Servers {
			if string(s.ID) == id {
				return string(s.Address), true
			}
		}
	}
	return "", false
}

// ServerAddr returns the Raft address of a server, as it reports it now; the address in
// the log may be outdated.
func (t *poolMember) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	if m, ok := t.member(string(id)); ok && m.Tags.Raft != "" {
		return raft.ServerAddress(m.Tags.Raft), nil
	}
	return "", fmt.Errorf("unknown server %s in the pool", id)
}

// apiMembers returns the members of the pool for the API.
func (t *poolMember) apiMembers() []api.Member {
	var out []api.Member
	for _, m := range t.gossip.Members() {
		tags := map[string]string{
			"name": m.Tags.Name, "raft": m.Tags.Raft, "rpc": m.Tags.RPC, "http": m.Tags.HTTP, "build": m.Tags.Build, "region": m.Tags.Region, "dc": m.Tags.Datacenter,
			"cluster": m.Tags.ClusterID, "role": "server",
		}
		if m.Tags.Newest > 0 {
			tags["log"] = fmt.Sprintf("%d-%d", m.Tags.Oldest, m.Tags.Newest) // log versions that it supports
		}
		for name, value := range tags {
			if value == "" {
				delete(tags, name)
			}
		}
		out = append(out, api.Member{Name: m.ID, Address: m.Addr, Status: m.Status.String(), Tags: tags})
	}
	return out
}
