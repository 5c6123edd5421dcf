package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// reclaimTime is how long after the detection of its failure the ID of a member may not be
// claimed by another address. A member that was suspected in error can refute that in the
// meantime. IDs of members that left or stopped are free at once.
const reclaimTime = time.Second

// A Pool is this server's membership in a gossip pool.
type Pool struct {
	cfg     Config
	list    *memberlist.Memberlist
	addr    string // advertised host:port; memberlist rewrites its own copy on each UpdateNode
	members *membership
	keys    *memberlist.Keyring // nil if the pool is not encrypted
	keyMu   sync.Mutex          // held while keys change
	output  *logWriter          // of memberlist
	cancel  context.CancelFunc
	loops   sync.WaitGroup
	once    sync.Once
	closed  error

	// tagMu is held while tags are broadcast. A newer broadcast replaces a pending one, so
	// the tags with Leaving must be the last.
	tagMu   sync.Mutex
	leaving bool
}

// Start joins the pool. It joins the seeds in the background and retries; Join returns
// errors immediately.
func Start(cfg Config) (*Pool, error) {
	cfg.Timing = cfg.Timing.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Pool{cfg: cfg, members: newMembership(&cfg), output: newLogWriter(cfg.log())}
	conf, err := p.memberlistConfig()
	if err != nil {
		return nil, err
	}
	if p.list, err = memberlist.Create(conf); err != nil {
		return nil, fmt.Errorf("gossip at %s: %w", cfg.Bind, err)
	}
	local := p.list.LocalNode()
	p.addr = net.JoinHostPort(local.Addr.String(), strconv.Itoa(int(local.Port)))
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.loops.Go(func() { p.rejoin(ctx) })
	return p, nil
}

// memberlistConfig is tuned for pools of three to seven members: few members can confirm a
// suspicion, so the timeout must not depend on confirmations.
func (p *Pool) memberlistConfig() (*memberlist.Config, error) {
	c := memberlist.DefaultLANConfig()
	c.Name, c.Label, c.RequireNodeNames = p.cfg.ID, p.cfg.Cluster, false
	c.ProbeInterval, c.ProbeTimeout = p.cfg.Timing.Probe, p.cfg.Timing.ProbeTimeout
	c.GossipInterval, c.PushPullInterval = p.cfg.Timing.Gossip, p.cfg.Timing.PushPull
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = 3, 2
	c.DeadNodeReclaimTime = reclaimTime
	c.Delegate, c.Events, c.Merge, c.Alive, c.Conflict = p.members, p.members, p.members, p.members, p.members
	c.LogOutput = p.output
	c.Transport = p.cfg.Transport
	if err := p.addresses(c); err != nil {
		return nil, err
	}
	if len(p.cfg.Keys) > 0 {
		var err error
		if c.Keyring, err = memberlist.NewKeyring(p.cfg.Keys, p.cfg.Keys[0]); err != nil {
			return nil, fmt.Errorf("gossip keys: %w", err)
		}
		p.keys = c.Keyring
	}
	return c, nil
}

// addresses sets the bind and advertise addresses of c.
func (p *Pool) addresses(c *memberlist.Config) (err error) {
	if p.cfg.Transport == nil {
		if c.BindAddr, c.BindPort, err = splitAddr(p.cfg.Bind); err != nil {
			return fmt.Errorf("bind address: %w", err)
		}
		c.AdvertisePort = c.BindPort
		if !net.ParseIP(c.BindAddr).IsUnspecified() {
			c.AdvertiseAddr = c.BindAddr
		} else if p.cfg.Advertise == "" {
			return fmt.Errorf("bound to %s, which is every address of the machine: set advertise to the one that other members use", p.cfg.Bind)
		}
	}
	if p.cfg.Advertise == "" {
		return nil
	}
	host, port, err := splitAddr(p.cfg.Advertise)
	if err != nil {
		return fmt.Errorf("advertise address: %w", err)
	}
	if host != "" {
		c.AdvertiseAddr = host
	}
	if port != 0 {
		c.AdvertisePort = port
	}
	return nil
}

// splitAddr splits host:port and resolves the host, because memberlist requires an IP
// address.
func splitAddr(s string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, err
	}
	if text != "" {
		if port, err = strconv.Atoi(text); err != nil || port < 0 || port > 65535 {
			return "", 0, fmt.Errorf("invalid port %q: must be between 0 and 65535", text)
		}
	}
	if host == "" || net.ParseIP(host) != nil {
		return host, port, nil
	}
	found, err := net.LookupHost(host)
	if err != nil {
		return "", 0, err
	}
	return found[0], port, nil
}

// Addr returns the advertised host:port of this member.
func (p *Pool) Addr() string { return p.addr }

// Members returns the members as seen by this one, ascending by ID. It includes itself and
// members that left or failed recently.
func (p *Pool) Members() []Member { return p.members.list() }

// Forget removes a member that left or failed from the list.
func (p *Pool) Forget(id string) { p.members.remove(id) }

// Events returns the channel of changes. All calls return the same channel; events are
// dropped if it is full.
func (p *Pool) Events() <-chan Event { return p.members.events }

// Join contacts members and returns how many have admitted this one. If some did not, the
// error contains the reasons.
func (p *Pool) Join(addrs ...string) (int, error) {
	n, err := p.list.Join(addrs)
	if err != nil {
		if refusal := p.members.popRefusal(); refusal != nil {
			err = refusal
		}
		err = fmt.Errorf("join %s: %w%s", addrs, err, joinHint(err))
	}
	return n, err
}

// joinHint returns what to do about a failed join if memberlist's error does not show it.
// Members of a pool with another name close the connection without an error.
func joinHint(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "decrypt"), strings.Contains(text, "encryption"):
		return "; the pool's members need a common key"
	case strings.HasSuffix(strings.TrimSpace(text), "EOF"), strings.Contains(text, "connection reset"):
		return "; a member that closes the connection may belong to a pool with another name"
	}
	return ""
}

// tagTimeout bounds how long SetTags waits for the broadcast.
const tagTimeout = 100 * time.Millisecond

// SetTags changes the published tags. It does nothing after Leave.
func (p *Pool) SetTags(t Tags) error {
	p.tagMu.Lock()
	defer p.tagMu.Unlock()
	if p.leaving {
		return nil
	}
	if err := p.members.setTags(t); err != nil {
		return err
	}
	// The next full state exchange delivers the tags even if the broadcast is lost.
	_ = p.list.UpdateNode(tagTimeout)
	return nil
}

// Leave announces that this member leaves permanently, and waits until another member has
// received it. The caller must still call Close.
func (p *Pool) Leave(timeout time.Duration) error {
	p.stop()
	// memberlist announces leaving and failing alike, so the Leaving tag is broadcast
	// first.
	err := p.markLeaving()
	if err == nil && !p.isAlone() {
		err = p.list.UpdateNode(timeout)
	}
	if err := errors.Join(err, p.list.Leave(timeout)); err != nil {
		return fmt.Errorf("gossip: the announcement of leaving may be lost: %w", err)
	}
	return nil
}

// Stop stops without leaving: other members treat it as a failure that they learn of
// immediately, and accept the ID from any address at once. It waits until another member
// has received it.
func (p *Pool) Stop(timeout time.Duration) error {
	p.stop()
	// The missing Leaving tag distinguishes this from Leave.
	err := p.list.Leave(timeout)
	if err != nil {
		p.cfg.log().Warn("other members may detect the stop only by probing", "err", err)
	}
	return p.Close()
}

// markLeaving sets the Leaving tag and disables later SetTags.
func (p *Pool) markLeaving() error {
	p.tagMu.Lock()
	defer p.tagMu.Unlock()
	p.leaving = true
	return p.members.markLeaving()
}

// Close ends without any announcement, like a power failure. No other method may be called
// afterwards. It may be called again.
func (p *Pool) Close() error {
	p.once.Do(func() {
		p.stop()
		p.closed = p.list.Shutdown()
	})
	return p.closed
}

// stop ends the background join and waits for it.
func (p *Pool) stop() {
	p.cancel()
	p.loops.Wait()
}

// rejoin joins the seeds, and repeats it while any of them is missing. Partitions that last
// longer than memberlist remembers dead members would never heal otherwise.
func (p *Pool) rejoin(ctx context.Context) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	var moved time.Time // last time another member had this ID at another address
	var limiter logLimiter
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		next, missing := p.cfg.Timing.Rejoin, p.missingAddrs()
		if time.Since(moved) < moveGrace {
			next, missing = min(next, time.Second), p.cfg.Seeds
		}
		if len(missing) > 0 {
			n, err := p.Join(missing...)
			if holder := (*duplicateIDError)(nil); errors.As(err, &holder) {
				moved = time.Now()
				if p.cfg.OnDuplicateID != nil && p.isAlone() {
					p.cfg.OnDuplicateID(ctx, holder.Holder)
				}
			}
			if n == 0 {
				if limiter.allow(fmt.Sprint(missing, err)) {
					p.cfg.log().WarnContext(ctx, "failed to join any seed", "seeds", missing, "err", err)
				}
				if p.isAlone() {
					next = min(next, time.Second)
				}
			}
		}
		if len(missing) == 0 {
			limiter.reset()
		}
		p.output.flush(time.Now())
		p.members.unlistForeign()
		p.members.expire(p.cfg.Timing.Forget)
		wait.Reset(next)
	}
}

// moveGrace is how long a member at a new address keeps joining the seeds. It may have been
// admitted before all members were ready to accept the new address.
const moveGrace = 5 * time.Second

// missingAddrs returns the addresses of seeds and failed members that are not alive in the
// pool.
func (p *Pool) missingAddrs() []string {
	here := map[string]bool{p.Addr(): true}
	var missing []string
	for _, m := range p.Members() {
		switch m.Status {
		case Alive:
			here[m.Addr] = true
		case Failed:
			missing = append(missing, m.Addr)
		}
	}
	for _, s := range p.cfg.Seeds {
		if addr := resolveSeed(s); !here[addr] {
			missing = append(missing, s)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// resolveSeed returns the address of a seed in the form of Member.Addr, or the seed itself
// if it cannot be resolved.
func resolveSeed(seed string) string {
	host, port, err := splitAddr(seed)
	if err != nil {
		return seed
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// isAlone reports whether no other member is alive.
func (p *Pool) isAlone() bool {
	return !slices.ContainsFunc(p.Members(), func(m Member) bool { return m.Status == Alive && m.ID != p.cfg.ID })
}

var errNoKeys = errors.New("pool is not encrypted: start its members with a key to enable encryption")
