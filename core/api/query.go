package api

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/audit"
	"github.com/cede-scheduler/cede/core/state"
)

// defaultWait is the maximum wait of a blocking query without the parameter wait.
const defaultWait = 5 * time.Minute

// allNamespaces selects every namespace.
const allNamespaces = "*"

// namespace returns the namespace of the request; "*" means all.
func (c *call) namespace() string {
	if ns := c.r.URL.Query().Get("namespace"); ns != "" {
		return ns
	}
	if c.token != nil && c.token.Namespace != "" {
		return c.token.Namespace
	}
	return model.DefaultNamespace
}

// singleNamespace returns the namespace of the object that the request names. It
// returns an error for "*", which is valid only in lists, and if body, the namespace
// in the body, differs.
func (c *call) singleNamespace(what, body string) (string, error) {
	ns := c.namespace()
	switch {
	case ns == allNamespaces:
		return "", rest.Invalid("invalid namespace=*: a %s belongs to one namespace, so set namespace=NAME", what)
	case body != "" && body != ns:
		return "", rest.Invalid("the request names namespace %s, but the body names %s", rest.Quote(ns), rest.Quote(body)).WithHint("set namespace=%s", body)
	}
	return ns, nil
}

// jobKey returns the key of the job that the path names.
func (c *call) jobKey() (model.JobKey, error) {
	ns, err := c.singleNamespace("job", "")
	return model.JobKey{Namespace: ns, ID: c.r.PathValue("id")}, err
}

// queryFlag reports whether a parameter is set to true, 1 or the empty string.
func queryFlag(c *call, name string) (bool, error) {
	q := c.r.URL.Query()
	if !q.Has(name) {
		return false, nil
	}
	text := q.Get(name)
	if text == "" {
		return true, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, rest.Invalid("invalid %s=%s: it must be true or false", name, rest.Quote(text)).With("Parameter", name)
	}
	return on, nil
}

// queryNumber returns the value of a parameter, or 0 if it is absent.
func queryNumber(c *call, name string) (uint64, error) {
	text := c.r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, rest.Invalid("invalid %s=%s: it must be a non-negative integer", name, rest.Quote(text)).With("Parameter", name)
	}
	return n, nil
}

// queryCheck returns the index that the parameter cas requires of an object, or nil if
// the request has none.
func queryCheck(c *call) (*uint64, error) {
	if !c.r.URL.Query().Has("cas") {
		return nil, nil
	}
	n, err := queryNumber(c, "cas")
	return &n, err
}

// queryWait returns how long the request may block. The parameter is a duration such
// as 30s, or a number of seconds.
func queryWait(c *call) (time.Duration, error) {
	text := c.r.URL.Query().Get("wait")
	if text == "" {
		return min(defaultWait, c.api.cfg.Limits.Wait), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		seconds, numeric := strconv.Atoi(text)
		if numeric != nil || seconds > 1<<30 {
			return 0, rest.Invalid("invalid wait=%s: it must be a duration such as 30s or 5m", rest.Quote(text)).With("Parameter", "wait")
		}
		d = time.Duration(seconds) * time.Second
	}
	if d < 0 {
		return 0, rest.Invalid("invalid wait=%s: it must not be negative", rest.Quote(text)).With("Parameter", "wait")
	}
	return min(d, c.api.cfg.Limits.Wait), nil
}

// A query describes a read and the changes that affect its result.
type query struct {
	keys       []state.Key // state that the result depends on
	table      state.Table // table with deletions that may affect the result
	wholeTable bool        // the result depends on the whole table
	// render returns the result and the greatest ModifyIndex in it.
	render func(*state.Snapshot) (result any, changed uint64, err error)
}

// read runs a query. With the parameter index it returns once the result is newer
// than that index, or when the wait ends.
func (c *call) read(v query) (any, error) {
	index, err := queryNumber(c, "index")
	if err != nil {
		return nil, err
	}
	wait, err := queryWait(c)
	if err != nil {
		return nil, err
	}
	snap, err := c.snapshot()
	if err != nil {
		return nil, err
	}
	if index == 0 || wait == 0 {
		return c.renderQuery(v, snap)
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), wait)
	defer cancel()
	return c.waitForChange(ctx, snap, index, v)
}

// renderQuery returns the result of a query from a snapshot, and sets its headers.
func (c *call) renderQuery(v query, snap *state.Snapshot) (any, error) {
	result, _, err := v.render(snap)
	c.setStateHeaders(snap)
	return result, err
}

// waitForChange waits until the result of v is newer than index, and returns it. When
// ctx ends, it returns the current result.
//
// The watch is created before the state is read, so that no change is missed. The
// ModifyIndex of existing objects shows earlier updates. Earlier deletions are
// visible only as the last change of their whole table, if the result depends on
// that. A restored snapshot changes every result, and its objects retain their ModifyIndex.
func (c *call) waitForChange(ctx context.Context, snap *state.Snapshot, index uint64, v query) (any, error) {
	for {
		watch := c.api.cfg.Server.Watch(v.keys...)
		last := uint64(0)
		if v.wholeTable {
			last = c.api.tables.changed(v.table)
		}
		if newest := c.api.cfg.Server.Snapshot(); newest.Index() > snap.Index() {
			snap = newest
		}
		result, changed, err := v.render(snap)
		if err != nil || max(changed, last, snap.RestoredAt()) > index {
			watch.Stop()
			c.setStateHeaders(snap)
			return result, err
		}
		ended := false
		select {
		case <-watch.C:
		case <-c.api.stopping:
			ended = true
		case <-ctx.Done():
			ended = true
		}
		watch.Stop()
		if err := c.r.Context().Err(); err != nil {
			return nil, err
		}
		if ended {
			return c.renderQuery(v, c.api.cfg.Server.Snapshot())
		}
	}
}

// snapshot returns the state to read: the latest state of this server or, with the
// parameter consistent, a state that includes every acknowledged write. It returns
// CodeNoLeader if this server has not caught up and stale is not set.
func (c *call) snapshot() (*state.Snapshot, error) {
	consistent, err := queryFlag(c, "consistent")
	if err != nil {
		return nil, err
	}
	stale, err := queryFlag(c, "stale")
	if err != nil || stale && consistent {
		if err == nil {
			err = rest.Invalid("stale and consistent are mutually exclusive")
		}
		return nil, err
	}
	if !consistent {
		if !stale && !c.api.cfg.Server.CaughtUp() {
			return nil, notCaughtUp("")
		}
		return c.api.cfg.Server.Snapshot(), nil
	}
	return c.api.cfg.Server.Consistent(c.writeContext())
}

// notCaughtUp returns the error of a read from a state that may be arbitrarily old.
func notCaughtUp(of string) *rest.Failure {
	return &rest.Failure{
		Code: rest.CodeNoLeader, Message: of + "this server has not caught up with a leader since it started",
		Hint: "use another server, or try again in a moment; stale=true reads the local state, however old",
	}
}

// setStateHeaders sets the headers that describe the age of the state. Responses with
// "not found" need them too, because they may be as outdated as any other.
func (c *call) setStateHeaders(snap *state.Snapshot) { c.setIndexHeaders(max(snap.Index(), 1)) }

func (c *call) setIndexHeaders(index uint64) {
	h := c.w.Header()
	h.Set(headerIndex, strconv.FormatUint(index, 10))
	known, contact := c.api.leadership()
	h.Set(headerLeader, strconv.FormatBool(known))
	h.Set(headerContact, strconv.FormatInt(contact.Milliseconds(), 10))
}

// leadership reports whether a leader is known, and the time since its last contact.
// If there was no contact since the start, the time since the start is returned,
// which is a lower bound.
func (a *API) leadership() (known bool, contact time.Duration) {
	if a.cfg.Replication == nil || a.cfg.Replication.IsLeader() {
		return true, 0
	}
	id, _ := a.cfg.Replication.Leader()
	contact, err := time.ParseDuration(a.cfg.Replication.Stats().LastContact)
	if err != nil {
		contact = a.cfg.Clock.Now().Sub(a.startTime)
	}
	contact = max(contact, 0)
	return id != "", contact
}

// writeContext returns the context of a write, with its deadline. It ends with the
// call at the latest.
func (c *call) writeContext() context.Context { return c.writeWithin(c.api.cfg.Limits.Call) }

// writeWithin is writeContext with another deadline. Changes are recorded as those of the
// caller.
func (c *call) writeWithin(timeout time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(c.r.Context(), timeout)
	c.cancels = append(c.cancels, cancel)
	return audit.WithOrigin(ctx, originOf(c))
}

// host returns the address of a client without its port.
func host(remote string) string {
	h, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return h
}

// queryPrefix returns the ID prefix that the request filters by.
func queryPrefix(c *call) string { return c.r.URL.Query().Get("prefix") }

// matches reports whether an object matches the request's filters and the caller may
// see it. namespace is "" for objects without one.
func (c *call) matches(namespace, id string) bool {
	ns := c.namespace()
	within := namespace == "" || (ns == allNamespaces || ns == namespace) && c.canSee(namespace)
	return within && strings.HasPrefix(id, queryPrefix(c))
}

// tableWatches tracks when whole tables last changed.
//
// The naive way is to compare the index of a query with the index of the state. On a
// busy cluster every query would then return at once, whether or not its result
// changed. ModifyIndex covers updates, but not deletions. Therefore one watch is kept
// for each queried table and checked by the next query: if it has fired, the table
// counts as changed at the current index of the state. That may be later than the
// actual change, but never earlier.
type tableWatches struct {
	states States
	mu     sync.Mutex
	known  map[state.Table]*tableWatch
}

type tableWatch struct {
	watch *state.Watch
	index uint64
}

func newTables(s States) *tableWatches {
	return &tableWatches{states: s, known: map[state.Table]*tableWatch{}}
}

// changed returns the index of a table's last change, or a later index.
func (t *tableWatches) changed(table state.Table) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.known[table]
	if w != nil {
		select {
		case <-w.watch.C:
		default:
			return w.index
		}
	}
	w = &tableWatch{watch: t.states.Watch(table.All())}
	w.index = t.states.Snapshot().Index()
	t.known[table] = w
	return w.index
}
