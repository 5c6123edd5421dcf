package api

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// defaultWait is how long a blocking query waits that does not say.
const defaultWait = 5 * time.Minute

// allNamespaces stands for every namespace.
const allNamespaces = "*"

// namespace is the one that the request is about; "*": all.
func (c *call) namespace() string {
	if ns := c.r.URL.Query().Get("namespace"); ns != "" {
		return ns
	}
	if c.token != nil && c.token.Namespace != "" {
		return c.token.Namespace
	}
	return model.DefaultNamespace
}

// singleNamespace is the namespace of a thing that the request names: only lists are
// about all of them. body is what the request's body says of it.
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

// jobKey is the job that the path names.
func (c *call) jobKey() (model.JobKey, error) {
	ns, err := c.singleNamespace("job", "")
	return model.JobKey{Namespace: ns, ID: c.r.PathValue("id")}, err
}

// queryFlag is whether a parameter is set: to true, 1, or nothing.
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

// queryNumber is a parameter; 0 where it is absent.
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

// queryWait is how long the request may block: a duration such as 30s, or seconds.
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

// query is what a read is made from, and when that changed.
type query struct {
	keys       []state.Key // what the answer is made of
	table      state.Table // of which things of the answer may disappear
	wholeTable bool        // the answer is made of the whole table
	// render makes the answer, and tells the greatest ModifyIndex in it.
	render func(*state.Snapshot) (answer any, changed uint64, err error)
}

// read answers a query: at once, or, with index, when the answer has changed
// since that index, or when the wait is over.
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

// renderQuery is the answer from a snapshot.
func (c *call) renderQuery(v query, snap *state.Snapshot) (any, error) {
	answer, _, err := v.render(snap)
	c.setStateHeaders(snap)
	return answer, err
}

// waitForChange waits until v's answer is newer than index. A query that waited long
// enough is answered with what there is.
//
// The watch is set before anything is looked at, so no change is missed. What
// was changed before is told by the ModifyIndex of what is there; that something
// disappeared, by the index of the last change of its whole table, as far as the
// answer is made of that.
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
		answer, changed, err := v.render(snap)
		if err != nil || max(changed, last) > index {
			watch.Stop()
			c.setStateHeaders(snap)
			return answer, err
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

// snapshot is the state to read: the newest of this server, or with consistent
// one that a majority stands behind.
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
	ctx, cancel := c.writeContext()
	defer cancel()
	return c.api.cfg.Server.Consistent(ctx)
}

// notCaughtUp is the refusal to speak of a state that may be anything.
func notCaughtUp(of string) *rest.Failure {
	return &rest.Failure{
		Code: rest.CodeNoLeader, Message: of + "this server has not caught up with a leader since it started",
		Hint: "use another server, or try again in a moment; stale=true reads the local state, however old",
	}
}

// setStateHeaders sets the headers by which clients go on. An answer that there is no such thing has
// them too: it may be as old as any other.
func (c *call) setStateHeaders(snap *state.Snapshot) { c.setIndexHeaders(max(snap.Index(), 1)) }

func (c *call) setIndexHeaders(index uint64) {
	h := c.w.Header()
	h.Set(headerIndex, strconv.FormatUint(index, 10))
	known, contact := c.api.leadership()
	h.Set(headerLeader, strconv.FormatBool(known))
	h.Set(headerContact, strconv.FormatInt(contact.Milliseconds(), 10))
}

// leadership is whether a leader is known, and how long ago it was heard last. Who never
// heard one has not since it began, at least; nothing less would be true of its state.
func (a *API) leadership() (known bool, contact time.Duration) {
	if a.cfg.Replication == nil || a.cfg.Replication.IsLeader() {
		return true, 0
	}
	id, _ := a.cfg.Replication.Leader()
	contact, err := time.ParseDuration(a.cfg.Replication.Stats().LastContact)
	if err != nil {
		contact = a.cfg.Clock.Now().Sub(a.began)
	}
	contact = max(contact, 0)
	return id != "", contact
}

// writeContext is the context of a write: it must be done in time.
func (c *call) writeContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.r.Context(), c.api.cfg.Limits.Call)
}

// host is the address of a client without its port.
func host(remote string) string {
	h, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return h
}

// queryPrefix is that of the ids that are asked for.
func queryPrefix(c *call) string { return c.r.URL.Query().Get("prefix") }

// matches is whether something in a namespace ("": in none), with an id, is asked for
// and may be seen.
func (c *call) matches(namespace, id string) bool {
	ns := c.namespace()
	within := namespace == "" || (ns == allNamespaces || ns == namespace) && c.canSee(namespace)
	return within && strings.HasPrefix(id, queryPrefix(c))
}
