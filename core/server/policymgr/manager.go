package policymgr

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
)

// retryInterval is how long Run waits before it repeats a write that failed.
const retryInterval = time.Second

// Host creates versions of policies. It is safe for concurrent use.
type Host interface {
	// Builtins returns the policies that are linked in, default among them.
	Builtins() []*policy.Version
	// Describe validates a request and returns the version that it describes. It runs the
	// policy as far as is necessary for that, and does not test it. Its error lists all
	// problems.
	Describe(ctx context.Context, r policy.LoadRequest) (*model.PolicyVersion, error)
	// Open returns a version that is ready for calls and has passed its test. module is
	// that of the version's digest, or nil if the kind of policy has none.
	Open(ctx context.Context, v *model.PolicyVersion, module []byte) (*policy.Version, error)
}

// Modules is the store of modules on this server: *blob.Store.
type Modules interface {
	Get(digest string) ([]byte, error)
}

// History stores records: *history.Store.
type History interface {
	Append(topic string, index, seq uint64, data []byte) error
}

// Log is the part of the log that a Manager uses. On a server that does not lead, Apply
// forwards entries to the leader.
type Log interface {
	Apply(ctx context.Context, e *replication.Entry) (*replication.Result, error)
	IsLeader() bool
	Leader() (id, addr string)
}

// Config configures a Manager. ServerID, Log, Store, Clock, Logger and CheckLeader are
// required.
type Config struct {
	ServerID string
	Log      Log
	Store    *state.Store
	Host     Host    // nil: there are no policies
	Modules  Modules // nil: policies with modules cannot be opened
	// Conditions evaluates the conditions of trials; nil: they never hold.
	Conditions Conditions
	Clock      clock.Clock
	Logger     *slog.Logger
	Registry   *prometheus.Registry // nil: metrics are not registered
	History    History              // nil: decisions are held in memory only

	// Voters returns the IDs of the servers that must check a version before it may be
	// activated; nil: this server alone.
	Voters func() []string
	// CheckLeader returns nil if this server may change policies: on the leader, once it
	// has applied everything that earlier leaders wrote. A leader that was just elected may
	// lack that a version was loaded again with other grants, and would take checks of the
	// earlier grants for its checks.
	CheckLeader func() error
}

// A Manager opens and activates the policies of one server. Make it with New, run it,
// and close it when nothing is planned any more.
type Manager struct {
	cfg      Config
	versions *versionTable
	active   *activeSet
	history  *decisionHistory
	shadows  *shadows
	trials   *trials
	metrics  *metrics

	loading chan struct{} // one slot: held during a load
	wake    chan struct{} // one slot: Run must look at the state again
	trips   chan trip

	stepMu sync.Mutex
	steps  chan struct{} // closed and replaced at the end of every step
}

// New returns a Manager whose active set is that of the state. Versions of the state are
// opened by Run.
func New(c Config) (*Manager, error) {
	if c.Voters == nil {
		c.Voters = func() []string { return []string{c.ServerID} }
	}
	m := &Manager{
		cfg: c, versions: newVersionTable(),
		loading: make(chan struct{}, 1), wake: make(chan struct{}, 1), trips: make(chan trip, 16), steps: make(chan struct{}),
	}
	m.history = newDecisionHistory(c.History, c.Logger)
	m.trials = newTrials(c.Conditions, c.Logger)
	m.shadows = newShadows(c.Clock, m.history)
	var builtins []*policy.Version
	if c.Host != nil {
		builtins = c.Host.Builtins()
	}
	var err error
	if m.active, err = newActiveSet(c.Store, m.versions, builtins, c.Logger, m.shadows.setActive); err != nil {
		return nil, err
	}
	m.metrics = newMetrics(c.Registry, m.active.set)
	m.active.onName(m.metrics.initPolicy)
	m.active.update()
	return m, nil
}

// Pin returns the active set of the newest state. The caller must unpin it.
func (m *Manager) Pin() *policy.Set { return m.active.pin() }

// OnName calls f for every name under which a policy is active, now and in future.
func (m *Manager) OnName(f func(name string)) { m.active.onName(f) }

// WaitReady waits until this server has opened every active version. Workers must not
// decide before.
func (m *Manager) WaitReady(ctx context.Context) error { return m.active.waitReady(ctx) }

// Ready reports whether this server has opened every active version, and the reasons for
// those that it has not.
func (m *Manager) Ready() (ready bool, detail string) { return m.active.ready() }

// Close releases every version that was opened. Builtin policies remain usable, so that
// status requests are still answered.
func (m *Manager) Close() {
	if m.active.close() {
		m.shadows.close()
		m.versions.close()
	}
}

// Run opens versions, reports the results to the cluster, and runs the tasks of the leader,
// until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { m.shadows.run(ctx) })
	group.Go(func() { m.history.run(ctx) })
	m.loop(ctx)
	group.Wait() // not deferred: a panic must end the process instead of waiting
}

func (m *Manager) loop(ctx context.Context) {
	for {
		watch := m.cfg.Store.Watch(state.TablePolicies.All())
		again := m.step(ctx)
		var timer clock.Timer
		if again > 0 {
			timer = m.cfg.Clock.AfterFunc(again, m.wakeUp)
		}
		select {
		case <-watch.C:
		case <-m.wake:
		case t := <-m.trips:
			m.trip(ctx, t)
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

// wakeUp makes Run look at the state again.
func (m *Manager) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default: // it is about to
	}
}

// step makes the transitions that the state requires, and returns after which time it must
// be called again; 0: when the state changes.
func (m *Manager) step(ctx context.Context) (again time.Duration) {
	snap := m.cfg.Store.Snapshot()
	states := snap.PolicyStates()
	versions := activeFirst(snap.PolicyVersions(), states)
	m.active.update()
	m.versions.removeMissing(versions)
	m.updateShadows(states)
	for _, v := range versions {
		m.open(ctx, v)
	}
	m.updateShadows(states) // a candidate may have been opened
	for _, v := range versions {
		if err := m.reportCheck(ctx, v); err != nil {
			again = retryInterval
		}
	}
	for _, due := range []time.Duration{reportShadows(ctx, m), m.endTrials(ctx, states)} {
		if due > 0 && (again == 0 || due < again) {
			again = due
		}
	}
	m.stepMu.Lock()
	defer m.stepMu.Unlock()
	close(m.steps)
	m.steps = make(chan struct{})
	return again
}

// stepDone returns a channel that is closed at the end of the current step, or of the
// next one.
func (m *Manager) stepDone() <-chan struct{} {
	m.stepMu.Lock()
	defer m.stepMu.Unlock()
	return m.steps
}

// activeFirst returns versions with the active ones first, because workers may be waiting
// for them.
func activeFirst(versions []*model.PolicyVersion, states []*model.PolicyState) []*model.PolicyVersion {
	isActive := func(v *model.PolicyVersion) bool {
		return slices.ContainsFunc(states, func(s *model.PolicyState) bool { return s.Active == v.ID })
	}
	var first, rest []*model.PolicyVersion
	for _, v := range versions {
		if isActive(v) {
			first = append(first, v)
		} else {
			rest = append(rest, v)
		}
	}
	return append(first, rest...)
}

// apply writes a command into the log. It returns a refusal as an error.
func (m *Manager) apply(ctx context.Context, c replication.Command) (*replication.Result, error) {
	result, err := m.cfg.Log.Apply(ctx, &replication.Entry{Time: m.cfg.Clock.Now().UnixNano(), Command: c})
	if err != nil {
		return nil, err
	}
	if result.Err != nil {
		return nil, result.Err
	}
	return result, nil
}

// unwritten translates an error of the log for users; nil stays nil.
func (m *Manager) unwritten(err error) error {
	if err == nil {
		return nil
	}
	return logwriter.Unwritten(m.cfg.ServerID, m.cfg.Log, err)
}

// requiredServers returns the servers that must have checked a version before it may be
// activated, in ascending order.
func (m *Manager) requiredServers() []string {
	list := slices.Clone(m.cfg.Voters())
	slices.Sort(list)
	return slices.Compact(list)
}
