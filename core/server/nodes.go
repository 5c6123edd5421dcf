package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// secretLength is how many bytes a node's secret must have at least.
const secretLength = 16

// RegisterNode stores a node, or what is new of it, and says within what time it
// must report. The first registration sets the secret; later ones must know it.
// One that changes nothing is a heartbeat.
func (s *Server) RegisterNode(ctx context.Context, n *model.Node, secret string) (*NodeLease, error) {
	if err := s.writer.CheckLeader(); err != nil {
		return nil, err
	}
	if err := checkNode(n, secret); err != nil {
		return nil, err
	}
	node := *n
	node.SecretHash = sha256.Sum256([]byte(secret))
	node.Status = model.NodeReady
	old := s.Snapshot().Node(n.ID)
	if old != nil {
		if err := knows(old, secret); err != nil {
			return nil, err
		}
		// Whether it takes work is the operators' to say, not the node's.
		node.Ineligible, node.Drain = old.Ineligible, old.Drain
		if old.Status == model.NodeReady && sameNode(old, &node) {
			return s.beat(ctx, old)
		}
	}
	result, err := s.registrations.Add(ctx, &node)
	if err != nil {
		return nil, err
	}
	if err := logwriter.Refusal(result); err != nil {
		return nil, err
	}
	return &NodeLease{Index: result.Index, TTL: s.nodes.Beat(n.ID, s.Snapshot().NodeCount())}, nil
}

// checkNode names everything that is wrong with a node.
func checkNode(n *model.Node, secret string) error {
	var problems []string
	if n.ID == "" || strings.ContainsAny(n.ID, " \t\n/") {
		problems = append(problems, fmt.Sprintf("the id %q is empty or has spaces or slashes", n.ID))
	}
	if len(secret) < secretLength {
		problems = append(problems, fmt.Sprintf("its secret has %d characters, and needs %d", len(secret), secretLength))
	}
	for _, rs := range []struct {
		what string
		all  model.Resources
	}{{"capacity", n.Capacity}, {"reserved", n.Reserved}} {
		for _, name := range slices.Sorted(maps.Keys(rs.all)) {
			if rs.all[name] < 0 {
				problems = append(problems, fmt.Sprintf("its %s of %s is negative: %d", rs.what, name, rs.all[name]))
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return apierror.New(apierror.CodeInvalid, "node %q: %s", n.ID, strings.Join(problems, "; ")).WithDetails(map[string]any{"Problems": problems})
}

// knows is nil for who knows the node's secret.
func knows(n *model.Node, secret string) error {
	if n.SecretHash == [32]byte{} { // of a time or a tool without secrets
		return nil
	}
	hash := sha256.Sum256([]byte(secret))
	if subtle.ConstantTimeCompare(hash[:], n.SecretHash[:]) == 1 {
		return nil
	}
	return apierror.New(apierror.CodeForbidden, "the secret of node %s is another", n.ID).
		WithHint("the agent's data directory holds it; a machine that lost it needs another node id, or the old node deleted")
}

// sameNode is whether a registration says what is known already.
func sameNode(a, b *model.Node) bool {
	devices := func(x, y model.Device) bool {
		return x.ID == y.ID && x.Count == y.Count && maps.Equal(x.Attributes, y.Attributes)
	}
	return a.Name == b.Name && a.Address == b.Address && a.Datacenter == b.Datacenter && a.Class == b.Class &&
		a.SecretHash == b.SecretHash && maps.Equal(a.Capacity, b.Capacity) && maps.Equal(a.Reserved, b.Reserved) &&
		maps.Equal(a.Attributes, b.Attributes) && maps.Equal(a.Meta, b.Meta) &&
		model.EqualTaints(a.DeclaredTaints(), model.MergeTaints(b.Taints, nil)) && slices.Equal(a.Ports, slices.Sorted(slices.Values(b.Ports))) && slices.EqualFunc(a.Devices, b.Devices, devices)
}

// Heartbeat notes that a node is there. Of one that is up nothing is written; one
// that was down takes work again.
func (s *Server) Heartbeat(ctx context.Context, id, secret string) (*NodeLease, error) {
	n, err := s.knownNode(id, secret)
	if err != nil {
		return nil, err
	}
	return s.beat(ctx, n)
}

func (s *Server) knownNode(id, secret string) (*model.Node, error) {
	if err := s.writer.CheckLeader(); err != nil {
		return nil, err
	}
	n, err := nodeIn(s.Snapshot(), id)
	if err != nil {
		return nil, err
	}
	return n, knows(n, secret)
}

func nodeIn(snap *state.Snapshot, id string) (*model.Node, error) {
	if n := snap.Node(id); n != nil {
		return n, nil
	}
	return nil, apierror.New(apierror.CodeNotFound, "there is no node %q", id).WithHint("an agent registers its node when it starts")
}

func (s *Server) beat(ctx context.Context, n *model.Node) (*NodeLease, error) {
	snap := s.Snapshot()
	lease := &NodeLease{Index: snap.Index()}
	if n.Status == model.NodeDown {
		index, err := s.returns.AddIndex(ctx, n.ID)
		if err != nil {
			return nil, err
		}
		lease.Index = index
	}
	lease.TTL = s.nodes.Beat(n.ID, snap.NodeCount())
	return lease, nil
}

// UpdateAllocs writes what a node says of its allocations, together with what
// other nodes say at that moment. What is not on the node is refused, what has
// gone already is skipped. It returns the index at which it is visible.
func (s *Server) UpdateAllocs(ctx context.Context, nodeID, secret string, updates []apply.ClientUpdate) (uint64, error) {
	if _, err := s.knownNode(nodeID, secret); err != nil {
		return 0, err
	}
	snap := s.Snapshot()
	known, err := ownNews("allocation %s is on node %s, not on %s", nodeID, updates, func(u *apply.ClientUpdate) (id, on string, there bool) {
		if a := snap.Alloc(u.AllocID); a != nil {
			return a.ID, a.NodeID, true
		}
		return "", "", false
	})
	if err != nil || len(known) == 0 {
		return snap.Index(), err
	}
	return s.updates.AddIndex(ctx, known)
}

// ownNews is what a reporter says of what is still there. What is on another one is
// not for it to speak of, and all of it is refused, in the words of refusal.
func ownNews[U any](refusal, reporter string, news []U, of func(*U) (id, on string, there bool)) (known []U, err error) {
	for i := range news {
		id, on, there := of(&news[i])
		if !there {
			continue
		}
		if on != reporter {
			return nil, apierror.New(apierror.CodeForbidden, refusal, id, on, reporter)
		}
		known = append(known, news[i])
	}
	return known, nil
}

// Drain has everything on a node move away, or ends that.
func (s *Server) Drain(ctx context.Context, id string, on bool) (uint64, error) {
	return s.changeNode(ctx, id, apply.NodeChange{Drain: &on})
}

// SetEligible says whether a node takes new work.
func (s *Server) SetEligible(ctx context.Context, id string, on bool) (uint64, error) {
	ineligible := !on
	return s.changeNode(ctx, id, apply.NodeChange{Ineligible: &ineligible})
}

// SetTaints takes taints away that operators set on a node, by key and effect, and
// sets others. What the node declares itself stays.
func (s *Server) SetTaints(ctx context.Context, id string, untaint, taint []model.Taint) (uint64, error) {
	return s.changeNode(ctx, id, apply.NodeChange{Untaint: untaint, Taint: taint})
}

func (s *Server) changeNode(ctx context.Context, id string, change apply.NodeChange) (uint64, error) {
	if err := s.writer.Check(ctx, func(snap *state.Snapshot) error { _, err := nodeIn(snap, id); return err }); err != nil {
		return 0, err
	}
	return s.writer.CommitIndex(ctx, &replication.ChangeNodes{IDs: []string{id}, Change: change})
}

// DeleteNode forgets a node on which nothing runs.
func (s *Server) DeleteNode(ctx context.Context, id string) (uint64, error) {
	if err := s.writer.Check(ctx, func(snap *state.Snapshot) error { return inUse(snap, id) }); err != nil {
		return 0, err
	}
	s.nodes.Remove(id)
	return s.writer.CommitIndex(ctx, &replication.DeleteNodes{IDs: []string{id}})
}

// inUse is why a node cannot be forgotten, or that there is none.
func inUse(snap *state.Snapshot, id string) error {
	n, err := nodeIn(snap, id)
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
		return apierror.New(apierror.CodeConflict, "%d allocations are on node %s, which is up", live, id).
			WithHint("drain it first: cede node drain %s", id)
	}
	return nil
}

// index is that of a result.
func (*Server) index(result *replication.Result, err error) (uint64, error) {
	if err != nil {
		return 0, err
	}
	return result.Index, nil
}
