package server

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
)

// LoadRequest asks a cluster to take a policy in.
type LoadRequest = policy.LoadRequest

// PolicyHost makes versions of policies. It is safe for concurrent use.
type PolicyHost interface {
	// Builtins makes the policies that are linked in, default among them.
	Builtins() []*policy.Version
	// Describe checks a request and says what version it comes to. It runs the
	// policy as far as it must to learn what it is, and does not test it yet. Its
	// error names every problem.
	Describe(ctx context.Context, r LoadRequest) (*model.PolicyVersion, error)
	// Open makes a version ready to be asked, and tests it. The module is that of
	// the version's digest, and nil where none travels.
	Open(ctx context.Context, v *model.PolicyVersion, module []byte) (*policy.Version, error)
}

// PolicyModules is where this server keeps modules: *blob.Store.
type PolicyModules interface {
	Get(digest string) ([]byte, error)
}

// policies is the life of policy versions on one server.
//
// What the cluster wants is in the state: which versions there are, and which of
// them plays what role. The naive way has the goroutine that applies the log
// compile and swap; but compiling takes half a second, and the log must not wait.
// So one goroutine (run) opens whatever the state lists, long before anybody
// activates it, and tells the cluster through the log how that went. A version
// that is to be activated is ready on every server by then, and putting it in
// force is one pointer: Pin compares the state with the set in force and, where
// they differ, makes another set. So no evaluation is planned by a set older than
// its snapshot, those that have begun end on the set that they pinned, and a
// restart or a snapshot from another server needs no code of its own.
//
// A server that has not opened a version that is active must not decide with
// another one: its workers wait, and it says so to whoever asks whether it is
// ready.
type policies struct {
	id      string
	log     Log
	store   *state.Store
	host    PolicyHost
	modules PolicyModules
	voters  func() []string // ids of the servers that must have checked a version
	// leads is nil where this server may change policies: on the leader, once it has
	// everything that earlier leaders wrote. One that was just elected may lack that a
	// version was loaded anew with other grants, and take checks of the old ones for it.
	leads    func() error
	clock    clock.Clock
	logger   *slog.Logger
	metrics  *policyMetrics
	records  *policyRecords
	shadows  *shadows
	active   *policy.ActiveSet
	fallback *policy.Version            // the built-in default
	builtins map[string]*policy.Version // by name, each held

	loading chan struct{} // one load at a time holds it
	wake    chan struct{} // run is to look again
	trips   chan trip

	mu       sync.Mutex
	opened   map[string]*policy.Version // by version id, each held
	failed   map[string]string          // why a version could not be opened here, by id
	told     map[string]model.PolicyCheck
	made     map[string]*model.PolicyVersion // as it was when it was tried, by id
	tests    map[string]int64                // calls that its test took, by id
	inForce  []inForce                       // what the set in force was made of, ascending by name
	lacks    []inForce                       // active, and not opened here
	complete chan struct{}
	steps    chan struct{} // closed and made anew at the end of every step
	closed   bool
	hears    []func(name string) // of names in force: see named
}

// inForce is a version that decides under a name.
type inForce struct{ name, version string }

// newPolicies makes the policies of a server. Run them, and close them when
// nobody plans any more.
func newPolicies(c Config) (*policies, error) {
	p := &policies{
		id: c.ID, log: c.Log, store: c.Store, host: c.Policies, modules: c.Modules, voters: c.Voters,
		clock: c.Clock, logger: c.Logger, builtins: map[string]*policy.Version{},
		loading: make(chan struct{}, 1), wake: make(chan struct{}, 1), trips: make(chan trip, 16),
		opened: map[string]*policy.Version{}, failed: map[string]string{}, told: map[string]model.PolicyCheck{},
		made: map[string]*model.PolicyVersion{}, tests: map[string]int64{},
		complete: make(chan struct{}), steps: make(chan struct{}),
	}
	close(p.complete)
	p.leads = p.isLeader
	if p.voters == nil {
		p.voters = func() []string { return []string{p.id} }
	}
	var list []*policy.Version
	if p.host != nil {
		list = p.host.Builtins()
	}
	for _, v := range list {
		p.builtins[v.Name] = v
		v.AddRef()
	}
	set, err := policy.NewSet(list...)
	if err != nil {
		return nil, err
	}
	p.fallback = set.Default()
	p.active = policy.NewActiveSet(set)
	p.metrics = newPolicyMetrics(c.Registry, p)
	p.named(p.metrics.begin)
	p.records = newPolicyRecords(c.History, p.logger)
	p.shadows = newShadows(p.clock, p.records)
	p.shadows.inForce(maps.Clone(p.builtins), p.fallback)
	p.follow()
	return p, nil
}

// close gives up every version that was opened. What is built in stays, so that
// whoever still asks how the policies are gets an answer.
func (p *policies) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	p.shadows.close()
	set, err := policy.NewSetWithFallback(p.fallback, slices.Collect(maps.Values(p.builtins))...)
	if err != nil {
		panic("server: " + err.Error()) // names of a map are unique
	}
	p.active.Swap(set)
	for _, v := range p.opened {
		v.ReleaseRef()
	}
}

// run opens versions, tells the cluster what came of it, and does what only the
// leader does, until the context ends.
func (p *policies) run(ctx context.Context) {
	var beside sync.WaitGroup
	beside.Go(func() { p.shadows.run(ctx) })
	beside.Go(func() { p.records.run(ctx) })
	p.work(ctx)
	beside.Wait() // not deferred: a panic must end the process, not wait for others
}

// work is run's own part.
func (p *policies) work(ctx context.Context) {
	for {
		watch := p.store.Watch(state.TablePolicies.All())
		again := p.step(ctx)
		var timer clock.Timer
		if again > 0 {
			timer = p.clock.AfterFunc(again, p.look)
		}
		select {
		case <-watch.C:
		case <-p.wake:
		case t := <-p.trips:
			p.trip(ctx, t)
		case <-ctx.Done():
		}
		watch.Stop()
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// look makes run look at the state again.
func (p *policies) look() {
	select {
	case p.wake <- struct{}{}:
	default: // it will
	}
}

// required is the servers that must have checked a version before it may decide.
func (p *policies) required() []string {
	list := slices.Clone(p.voters())
	slices.Sort(list)
	return slices.Compact(list)
}
