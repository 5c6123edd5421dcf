package server

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/server/apierror"
)

// decisionsShown is how many of the newest decisions a status has.
const decisionsShown = 20

// PolicyStatus is a policy, as the cluster has it and as it does on the server
// that answers.
type PolicyStatus struct {
	Name    string
	Builtin bool // a policy of this name is linked in, and decides where none of State does
	// State is what role which version plays; nil where none ever played one.
	State    *model.PolicyState
	Versions []*model.PolicyVersion // that are loaded, the newest first
	// Awaited is which servers must still check a version and why they have not, by
	// the version's id and the server's.
	Awaited map[string]map[string]string

	// Here is the version that decides on this server; nil: none does.
	Here *PolicyHere
	// Ready lists the versions that this server has opened, by id, and Refused why
	// it could not open others.
	Ready   []string
	Refused map[string]string

	Shadow    *ShadowStatus     // nil: there is no shadow run
	Decisions []*PolicyDecision // of this server, the newest first
	Lost      int64             // records that were not written, of all policies
}

// PolicyHere is what decides under a name on one server, with counts since it was
// opened and tested there.
type PolicyHere struct {
	Version, Digest string
	Kind            string // builtin where the cluster has loaded none
	Calls, Faults   int64
	Fallbacks       int64  // evaluations in which default decided instead
	Open            string // why it is not asked at present; "" while it is
}

// PolicyStatus tells of one policy.
func (s *Server) PolicyStatus(_ context.Context, name string) (*PolicyStatus, error) {
	p := s.policies
	known := p.names()
	if !slices.Contains(known, name) {
		return nil, apierror.New(apierror.CodeNotFound, "there is no policy named %q", name).WithHint("loaded or built in are %s", strings.Join(known, ", "))
	}
	return s.policyStatus(name), nil
}

// PolicyStatuses tells of every policy, ascending by name.
func (s *Server) PolicyStatuses(context.Context) []*PolicyStatus {
	var list []*PolicyStatus
	for _, name := range s.policies.names() {
		list = append(list, s.policyStatus(name))
	}
	return list
}

func (s *Server) policyStatus(name string) *PolicyStatus {
	st := s.policies.status(name)
	st.Awaited = map[string]map[string]string{}
	for _, v := range st.Versions {
		if awaited := s.AwaitedChecks(v); len(awaited) > 0 {
			st.Awaited[v.ID] = awaited
		}
	}
	return st
}

// names lists the policies that are linked in, loaded, or play a role.
func (p *policies) names() []string {
	names := map[string]bool{}
	for name := range p.builtins {
		names[name] = true
	}
	snap := p.store.Snapshot()
	for _, v := range snap.PolicyVersions() {
		names[v.Name] = true
	}
	for _, s := range snap.PolicyStates() {
		names[s.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (p *policies) status(name string) *PolicyStatus {
	snap := p.store.Snapshot()
	st := &PolicyStatus{
		Name: name, Builtin: p.builtins[name] != nil, State: snap.PolicyState(name), Versions: versionsOf(snap, name),
		Here: p.here(name), Shadow: p.shadows.status(name), Refused: map[string]string{},
	}
	st.Decisions, st.Lost = p.records.decisions(name, decisionsShown)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range st.Versions {
		if p.opened[v.ID] != nil {
			st.Ready = append(st.Ready, v.ID)
		} else if why := p.failed[v.ID]; why != "" {
			st.Refused[v.ID] = why
		}
	}
	return st
}

// here is what decides under a name on this server.
func (p *policies) here(name string) *PolicyHere {
	set := p.Pin()
	defer set.Unpin()
	versions := set.Versions()
	i := slices.IndexFunc(versions, func(v *policy.Version) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	v := versions[i]
	h := &PolicyHere{Version: v.ID, Digest: v.Digest, Kind: model.PolicyBuiltin, Fallbacks: v.Fallbacks()}
	h.Calls, h.Faults = v.Stats()
	p.mu.Lock()
	if p.opened[v.ID] == v { // else a built-in that was loaded too: another one of the same id was tested
		h.Calls -= p.tests[v.ID]
	}
	p.mu.Unlock()
	if loaded := p.store.Snapshot().PolicyVersion(v.ID); loaded != nil {
		h.Kind = loaded.Kind
	}
	if why := v.Breaker.OpenError(p.clock.Now().UnixNano()); why != nil {
		h.Open = why.Error()
	}
	return h
}
