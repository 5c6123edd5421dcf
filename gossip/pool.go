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

// reclaimTime is how long after a member was found to have failed its id may come from
// another address: long enough for one that failed in error to say that it did not. Who
// left or stopped is not waited for.
const reclaimTime = time.Second

// Pool is this server's membership of the pool.
type Pool struct {
	cfg     Config
	list    *memberlist.Memberlist
	members *membership
	keys    *memberlist.Keyring // nil: not sealed
	cancel  context.CancelFunc
	loops   sync.WaitGroup
	once    sync.Once
	closed  error

	// tagMu is held while tags go on their way. The last word of a member that leaves is
	// that it does, since a newer word takes the place of one that is on its way.
	tagMu   sync.Mutex
	leaving bool
}

// Start takes part in the pool. It joins the seeds in the background and goes
// on trying; Join tells at once what is wrong.
func Start(cfg Config) (*Pool, error) {
	cfg.Timing = cfg.Timing.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Pool{cfg: cfg, members: newMembership(&cfg)}
	conf, err := p.memberlistConfig()
	if err != nil {
		return nil, err
	}
	if p.list, err = memberlist.Create(conf); err != nil {
		return nil, fmt.Errorf("gossip at %s: %w", cfg.Bind, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.loops.Go(func() { p.rejoin(ctx) })
	return p, nil
}

// memberlistConfig is tuned for pools of three to seven: a suspicion can hardly
// be confirmed there by others, so it must not wait for them for long.
func (p *Pool) memberlistConfig() (*memberlist.Config, error) {
	c := memberlist.DefaultLANConfig()
	c.Name, c.Label, c.RequireNodeNames = p.cfg.ID, p.cfg.Cluster, false
	c.ProbeInterval, c.ProbeTimeout = p.cfg.Timing.Probe, p.cfg.Timing.ProbeTimeout
	c.GossipInterval, c.PushPullInterval = p.cfg.Timing.Gossip, p.cfg.Timing.PushPull
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = 3, 2
	c.DeadNodeReclaimTime = reclaimTime
	c.Delegate, c.Events, c.Merge, c.Alive, c.Conflict = p.members, p.members, p.members, p.members, p.members
	c.LogOutput = newLogWriter(p.cfg.log())
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

func (p *Pool) addresses(c *memberlist.Config) (err error) {
	if p.cfg.Transport == nil {
		if c.BindAddr, c.BindPort, err = splitAddr(p.cfg.Bind); err != nil {
			return fmt.Errorf("the address to bind: %w", err)
		}
		c.AdvertisePort = c.BindPort
		if !net.ParseIP(c.BindAddr).IsUnspecified() {
			c.AdvertiseAddr = c.BindAddr
		} else if p.cfg.Advertise == "" {
			return fmt.Errorf("it is bound to %s, every address of the machine: say in advertise which one others shall use", p.cfg.Bind)
		}
	}
	if p.cfg.Advertise == "" {
		return nil
	}
	host, port, err := splitAddr(p.cfg.Advertise)
	if err != nil {
		return fmt.Errorf("the address to advertise: %w", err)
	}
	if host != "" {
		c.AdvertiseAddr = host
	}
	if port != 0 {
		c.AdvertisePort = port
	}
	return nil
}

// splitAddr reads host:port and looks the host up: memberlist wants an address.
func splitAddr(s string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, err
	}
	if text != "" {
		if port, err = strconv.Atoi(text); err != nil || port < 0 || port > 65535 {
			return "", 0, fmt.Errorf("port %q is not between 0 and 65535", text)
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

// Addr is the host:port that others reach this member at.
func (p *Pool) Addr() string {
	n := p.list.LocalNode()
	return net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port)))
}

// Members lists the pool as this member sees it, itself and who left or failed
// of late included, ascending by id.
func (p *Pool) Members() []Member { return p.members.list() }

// Forget drops a member that left or failed from the list.
func (p *Pool) Forget(id string) { p.members.remove(id) }

// Events tells of changes. There is one channel, and what nobody takes in time is
// dropped.
func (p *Pool) Events() <-chan Event { return p.members.events }

// Join asks members to let this one in, and returns how many did. The error
// says why each of the others did not.
func (p *Pool) Join(addrs ...string) (int, error) {
	n, err := p.list.Join(addrs)
	if err != nil {
		if refused := p.members.popRefusal(); refused != nil {
			err = refused
		}
		err = fmt.Errorf("join %s: %w%s", addrs, err, joinHint(err))
	}
	return n, err
}

// joinHint is what to do about a join that failed, where memberlist's words do not say:
// members of a pool with another name hang up without any.
func joinHint(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "decrypt"), strings.Contains(text, "encryption"):
		return "; the pool's members need a key in common"
	case strings.HasSuffix(strings.TrimSpace(text), "EOF"), strings.Contains(text, "connection reset"):
		return "; who hangs up without a word may belong to a pool of another name"
	}
	return ""
}

// tagTimeout is how long SetTags waits for the rumour to be on its way.
const tagTimeout = 100 * time.Millisecond

// SetTags changes what this member says of itself. Once it leaves, nothing does.
func (p *Pool) SetTags(t Tags) error {
	p.tagMu.Lock()
	defer p.tagMu.Unlock()
	if p.leaving {
		return nil
	}
	if err := p.members.setTags(t); err != nil {
		return err
	}
	// Everybody hears of it in the end, by the next exchange of everything at the
	// latest; how soon is no matter.
	_ = p.list.UpdateNode(tagTimeout)
	return nil
}

// Conflicts lists members that claimed an id which another one holds, newest
// first. They are not in the pool, and may not know it.
func (p *Pool) Conflicts() []Conflict { return p.members.listConflicts() }

// Leave tells the pool that this member goes for good, and waits until somebody
// heard it. Close must still be called.
func (p *Pool) Leave(timeout time.Duration) error {
	p.stop()
	// memberlist's word for leaving and for failing is the same, so this is said first.
	told := p.markLeaving()
	if told == nil && !p.isAlone() {
		told = p.list.UpdateNode(timeout)
	}
	if err := errors.Join(told, p.list.Leave(timeout)); err != nil {
		return fmt.Errorf("gossip: the others may not have heard that this member leaves: %w", err)
	}
	return nil
}

// Stop ends without leaving: to the others it looks like a failure, but one that they
// hear of at once, and after which the id may come back from any address at once. It
// waits until somebody heard it.
func (p *Pool) Stop(timeout time.Duration) error {
	p.stop()
	// Whether a member left or stopped is told by its tags.
	told := p.list.Leave(timeout)
	if told != nil {
		p.cfg.log().Warn("the others may not have heard that this member stops: they find out by themselves", "err", told)
	}
	return p.Close()
}

// markLeaving has this member say that it leaves, and nothing else from there on.
func (p *Pool) markLeaving() error {
	p.tagMu.Lock()
	defer p.tagMu.Unlock()
	p.leaving = true
	return p.members.markLeaving()
}

// Close ends without a word, as a power cut would. After it nothing may be called.
func (p *Pool) Close() error {
	p.once.Do(func() {
		p.stop()
		p.closed = p.list.Shutdown()
	})
	return p.closed
}

func (p *Pool) stop() {
	p.cancel()
	p.loops.Wait()
}

// rejoin joins the seeds, and again whenever one of them is missing: members that
// were apart for longer than gossip remembers the dead would stay apart for ever.
func (p *Pool) rejoin(ctx context.Context) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	var moved time.Time // when others last knew this member elsewhere
	var complaints logLimiter
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
				if complaints.allow(fmt.Sprint(missing, err)) {
					p.cfg.log().WarnContext(ctx, "nobody to join was reached", "seeds", missing, "err", err)
				}
				if p.isAlone() {
					next = min(next, time.Second)
				}
			}
		}
		if len(missing) == 0 {
			complaints.reset()
		}
		p.members.unlistForeign()
		p.members.expire(p.cfg.Timing.Forget)
		wait.Reset(next)
	}
}

// moveGrace is for how long a member that came back elsewhere goes on saying so: it may have
// been let in before all the others were ready to believe it.
const moveGrace = 5 * time.Second

// missingAddrs is the seeds and the failed members that are not in the pool now.
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

// resolveSeed is a seed's address as members are listed with; the seed itself where
// that cannot be told.
func resolveSeed(seed string) string {
	host, port, err := splitAddr(seed)
	if err != nil {
		return seed
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

func (p *Pool) isAlone() bool {
	return !slices.ContainsFunc(p.Members(), func(m Member) bool { return m.Status == Alive && m.ID != p.cfg.ID })
}

var errNoKeys = errors.New("the pool has no key: start its members with one to turn encryption on")
