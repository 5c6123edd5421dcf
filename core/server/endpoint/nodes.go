package endpoint

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/groupcommit"
	"github.com/cede-scheduler/cede/core/server/heartbeat"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// minSecretLength is the minimum length of the secret of a node or a cluster agent, in
// bytes.
const minSecretLength = 16

// NodeLease is the answer to a node or a cluster agent that reported.
type NodeLease struct {
	Index uint64
	TTL   time.Duration // within which it must report again
}

// Nodes registers and changes nodes, and receives their reports.
type Nodes struct {
	writer        *logwriter.Writer
	heartbeats    *heartbeat.Nodes
	registrations *groupcommit.Batcher[*model.Node]
	returns       *groupcommit.Batcher[string] // IDs of nodes that were down and report again
	updates       *groupcommit.Batcher[[]apply.ClientUpdate]
}

func newNodes(c Config) *Nodes {
	n := &Nodes{writer: c.Writer, heartbeats: c.Nodes}
	limit := func() int { return c.BatchSize(c.RegisterBatch) }
	n.registrations = groupcommit.New(c.Batchers, groupcommit.Config[*model.Node]{Clock: c.Clock, Limit: limit, Write: n.writeRegistrations})
	n.returns = groupcommit.New(c.Batchers, groupcommit.Config[string]{Clock: c.Clock, Limit: limit, Write: n.writeReturns})
	n.updates = groupcommit.New(c.Batchers, groupcommit.Config[[]apply.ClientUpdate]{
		Clock: c.Clock, Window: c.UpdateWindow, Limit: func() int { return c.UpdateBatch },
		Size: func(list []apply.ClientUpdate) int { return len(list) }, Write: n.writeUpdates,
	})
	return n
}

// RegisterNode stores a node, or its changes, and returns the time within which it must
// report. The first registration sets the secret, which later ones must present. One that
// changes nothing is a heartbeat.
func (e *Nodes) RegisterNode(ctx context.Context, n *model.Node, secret string) (*NodeLease, error) {
	if err := e.writer.CheckLeader(); err != nil {
		return nil, err
	}
	if err := validateNode(n, secret); err != nil {
		return nil, err
	}
	node := *n
	node.SecretHash = sha256.Sum256([]byte(secret))
	node.Status = model.NodeReady
	old := e.writer.Snapshot().Node(n.ID)
	if old != nil {
		if err := checkNodeSecret(old, secret); err != nil {
			return nil, err
		}
		// Operators decide whether a node is eligible, not the node.
		node.Ineligible, node.NodeDrain = old.Ineligible, old.NodeDrain
		if old.Status == model.NodeReady && equalNodes(old, &node) {
			return e.heartbeat(ctx, old)
		}
	}
	result, err := e.registrations.Add(ctx, &node)
	if err != nil {
		return nil, err
	}
	if err := logwriter.Refusal(result); err != nil {
		return nil, err
	}
	return &NodeLease{Index: result.Index, TTL: e.heartbeats.Beat(n.ID, e.writer.Snapshot().NodeCount())}, nil
}

// validateNode returns an error that lists all problems of a node.
func validateNode(n *model.Node, secret string) error {
	problems := idProblems(n.ID)
	for _, text := range [][2]string{{"name", n.Name}, {"datacenter", n.Datacenter}, {"class", n.Class}} {
		if strings.ContainsFunc(text[1], isUnprintable) {
			problems = append(problems, fmt.Sprintf("%s %q must consist of printable characters", text[0], text[1]))
		}
	}
	if len(secret) < minSecretLength {
		problems = append(problems, fmt.Sprintf("secret has %d characters, and needs at least %d", len(secret), minSecretLength))
	}
	problems = append(problems, negativeAmounts("capacity", n.Capacity)...)
	problems = append(problems, negativeAmounts("reserved amount", n.Reserved)...)
	return invalid(problems, "node %q", n.ID)
}

func idProblems(id string) []string {
	switch {
	case id == "" || strings.ContainsAny(id, " \t\n/"):
		return []string{fmt.Sprintf("ID %q must not be empty or contain spaces or slashes", id)}
	case id == "." || id == "..": // a URL cannot contain them
		return []string{fmt.Sprintf("ID %q must contain other characters than dots", id)}
	case strings.ContainsFunc(id, isUnprintable):
		return []string{fmt.Sprintf("ID %q must consist of printable characters", id)}
	}
	return nil
}

// isUnprintable reports whether a character could control the terminal of an operator.
func isUnprintable(r rune) bool { return !unicode.IsPrint(r) }

func negativeAmounts(noun string, r model.Resources) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if r[name] < 0 {
			problems = append(problems, fmt.Sprintf("%s of %s must not be negative: %d", noun, name, r[name]))
		}
	}
	return problems
}

// checkNodeSecret returns an error if secret is not that of the node.
func checkNodeSecret(n *model.Node, secret string) error {
	if n.SecretHash == [32]byte{} { // registered without a secret, such as by a tool
		return nil
	}
	hash := sha256.Sum256([]byte(secret))
	if subtle.ConstantTimeCompare(hash[:], n.SecretHash[:]) == 1 {
		return nil
	}
	return apierror.New(apierror.CodeForbidden, "wrong secret for node %s", n.ID).
		WithHint("the agent's data directory holds it; a machine that lost it needs another node ID, or the old node deleted")
}

// equalNodes reports whether a registration changes nothing.
func equalNodes(old, n *model.Node) bool {
	devices := func(x, y model.Device) bool {
		return x.ID == y.ID && x.Count == y.Count && maps.Equal(x.Attributes, y.Attributes)
	}
	return old.Name == n.Name && old.Address == n.Address && old.Datacenter == n.Datacenter && old.Class == n.Class &&
		old.SecretHash == n.SecretHash && maps.Equal(old.Capacity, n.Capacity) && maps.Equal(old.Reserved, n.Reserved) &&
		maps.Equal(old.Attributes, n.Attributes) && maps.Equal(old.Meta, n.Meta) &&
		model.EqualTaints(old.DeclaredTaints(), model.MergeTaints(n.Taints, nil)) &&
		slices.Equal(old.Ports, slices.Sorted(slices.Values(n.Ports))) && slices.EqualFunc(old.Devices, n.Devices, devices)
}

// Heartbeat records that a node reported. Nothing is written for a node that is up; one
// that was down becomes ready again.
func (e *Nodes) Heartbeat(ctx context.Context, id, secret string) (*NodeLease, error) {
	n, err := e.authenticate(id, secret)
	if err != nil {
		return nil, err
	}
	return e.heartbeat(ctx, n)
}

// authenticate returns the node with an ID if the secret is right.
func (e *Nodes) authenticate(id, secret string) (*model.Node, error) {
	if err := e.writer.CheckLeader(); err != nil {
		return nil, err
	}
	n, err := findNode(e.writer.Snapshot(), id)
	if err != nil {
		return nil, err
	}
	return n, checkNodeSecret(n, secret)
}

func findNode(snap *state.Snapshot, id string) (*model.Node, error) {
	if n := snap.Node(id); n != nil {
		return n, nil
	}
	return nil, apierror.New(apierror.CodeNotFound, "no node %q", id).WithHint("an agent registers its node when it starts")
}

func (e *Nodes) heartbeat(ctx context.Context, n *model.Node) (*NodeLease, error) {
	snap := e.writer.Snapshot()
	lease := &NodeLease{Index: snap.Index()}
	if n.Status == model.NodeDown {
		index, err := e.returns.AddIndex(ctx, n.ID)
		if err != nil {
			return nil, err
		}
		lease.Index = index
	}
	lease.TTL = e.heartbeats.Beat(n.ID, snap.NodeCount())
	return lease, nil
}

// UpdateAllocs writes the report of a node about its allocations, together with reports of
// other nodes. It returns the index at which the report is visible. The whole report is
// refused if an allocation is on another node; if an allocation no longer exists, it is
// skipped.
func (e *Nodes) UpdateAllocs(ctx context.Context, nodeID, secret string, updates []apply.ClientUpdate) (uint64, error) {
	if _, err := e.authenticate(nodeID, secret); err != nil {
		return 0, err
	}
	snap := e.writer.Snapshot()
	known, err := ownUpdates("allocation %s is on node %s, not on %s", nodeID, updates, func(u *apply.ClientUpdate) (id, on string, ok bool) {
		if a := snap.Alloc(u.AllocID); a != nil {
			return a.ID, a.NodeID, true
		}
		return "", "", false
	})
	if err != nil || len(known) == 0 {
		return snap.Index(), err
	}
	return e.updates.AddIndex(ctx, known)
}

// ownUpdates returns the updates of objects that exist. It returns an error with the given
// format if an object is not on the reporter; locate returns where an object is.
func ownUpdates[U any](format, reporter string, updates []U, locate func(*U) (id, on string, ok bool)) (known []U, err error) {
	for i := range updates {
		id, on, ok := locate(&updates[i])
		if !ok {
			continue
		}
		if on != reporter {
			return nil, apierror.New(apierror.CodeForbidden, format, id, on, reporter)
		}
		known = append(known, updates[i])
	}
	return known, nil
}

// DrainOptions are the options of a drain.
type DrainOptions struct {
	// Deadline is the time after which allocations that could not be moved are
	// stopped. 0: never; negative: at once.
	Deadline time.Duration
	// KeepSystemJobs leaves the allocations of system jobs on the node.
	KeepSystemJobs bool
}

// Drain starts draining a node, or changes the options of its drain.
func (e *Nodes) Drain(ctx context.Context, id string, o DrainOptions) (uint64, error) {
	change := apply.NodeChange{Drain: new(true), DrainKeepsSystem: o.KeepSystemJobs}
	if e.writer.Snapshot().Meta().Version >= drainSinceFrom {
		change.DrainSince = e.writer.Now()
	}
	if o.Deadline != 0 {
		now := e.writer.Now()
		// A deadline beyond the end of time would be in the past.
		change.DrainDeadline = now + min(int64(max(o.Deadline, 0)), math.MaxInt64-now)
	}
	return e.change(ctx, id, change)
}

// drainSinceFrom is the first cluster version that records when a drain began.
const drainSinceFrom = 2

// CancelDrain stops draining a node.
func (e *Nodes) CancelDrain(ctx context.Context, id string) (uint64, error) {
	return e.change(ctx, id, apply.NodeChange{Drain: new(bool)})
}

// SetEligible makes a node eligible or ineligible for new placements.
func (e *Nodes) SetEligible(ctx context.Context, id string, on bool) (uint64, error) {
	ineligible := !on
	return e.change(ctx, id, apply.NodeChange{Ineligible: &ineligible})
}

// SetTaints removes taints that operators set on a node, by key and effect, and adds
// others. Taints that the node declares itself stay.
func (e *Nodes) SetTaints(ctx context.Context, id string, untaint, taint []model.Taint) (uint64, error) {
	return e.change(ctx, id, apply.NodeChange{Untaint: untaint, Taint: taint})
}

func (e *Nodes) change(ctx context.Context, id string, change apply.NodeChange) (uint64, error) {
	if err := e.writer.Check(ctx, func(snap *state.Snapshot) error { _, err := findNode(snap, id); return err }); err != nil {
		return 0, err
	}
	return e.writer.CommitIndex(ctx, &replication.ChangeNodes{IDs: []string{id}, Change: change})
}

// DeleteNode removes a node that nothing runs on.
func (e *Nodes) DeleteNode(ctx context.Context, id string) (uint64, error) {
	if err := e.writer.Check(ctx, func(snap *state.Snapshot) error { return checkUnused(snap, id) }); err != nil {
		return 0, err
	}
	e.heartbeats.Remove(id)
	return e.writer.CommitIndex(ctx, &replication.DeleteNodes{IDs: []string{id}})
}

// checkUnused returns an error if a node does not exist, or is up and has allocations.
func checkUnused(snap *state.Snapshot, id string) error {
	n, err := findNode(snap, id)
	if err != nil {
		return err
	}
	live := 0
	for _, a := range snap.AppendNodeAllocs(nil, id) {
		if !a.Client.Terminal() {
			live++
		}
	}
	if live > 0 && n.Status == model.NodeReady {
		return apierror.New(apierror.CodeConflict, "node %s is up and has %d allocations", id, live).
			WithHint("drain it first: cede node drain %s", id)
	}
	return nil
}

func (e *Nodes) writeRegistrations(ctx context.Context, nodes []*model.Node) (*replication.Result, error) {
	return e.writer.Propose(ctx, &replication.RegisterNodes{Nodes: lastOfEach(nodes)})
}

// lastOfEach returns the last registration of each node.
func lastOfEach(nodes []*model.Node) []*model.Node {
	last := make(map[string]int, len(nodes))
	for i, n := range nodes {
		last[n.ID] = i
	}
	if len(last) == len(nodes) {
		return nodes
	}
	var kept []*model.Node
	for i, n := range nodes {
		if last[n.ID] == i {
			kept = append(kept, n)
		}
	}
	return kept
}

func (e *Nodes) writeReturns(ctx context.Context, ids []string) (*replication.Result, error) {
	ready := model.NodeReady
	slices.Sort(ids)
	return e.writer.Propose(ctx, &replication.ChangeNodes{IDs: slices.Compact(ids), Change: apply.NodeChange{Status: &ready}})
}

func (e *Nodes) writeUpdates(ctx context.Context, parts [][]apply.ClientUpdate) (*replication.Result, error) {
	return e.writer.Propose(ctx, &replication.UpdateAllocs{Updates: slices.Concat(parts...)})
}
