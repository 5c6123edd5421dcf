package api

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/api/view"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/core/model"
	bindingscheduler "github.com/cede-scheduler/cede/core/scheduler/binding"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

const tagBindings = "bindings"

func bindingRoutes() []route {
	reader, submitter := []acl.Role{acl.Read}, []acl.Role{acl.Submit}
	return []route{
		{
			methods: get, pattern: "/v1/bindings", name: "bindings_list", tag: tagBindings, roles: reader, scope: scopeNamespace,
			doc: "Lists bindings, ordered by namespace and ID.", isQuery: true, isPaged: true,
			response: []*client.BindingStub{}, handle: listBindings,
		},
		{
			methods: get, pattern: "/v1/binding/{id}", name: "binding_get", tag: tagBindings, roles: reader, scope: scopeNamespace,
			doc: "Returns a binding with its assignments, the reasons for missing replicas, and the bindings that it evicted. The ID may be any unique prefix.", isQuery: true,
			response: client.BindingStatus{}, handle: getBinding,
		},
		{
			methods: putMethods, pattern: "/v1/binding/{id}", name: "binding_put", tag: tagBindings, roles: submitter, scope: scopeNamespace, leaderOnly: true,
			doc:     "Registers or updates a binding.",
			request: client.Binding{}, response: client.BindingResponse{}, handle: withBody(putBinding),
		},
		{
			methods: remove, pattern: "/v1/binding/{id}", name: "binding_stop", tag: tagBindings, roles: submitter, scope: scopeNamespace, leaderOnly: true,
			doc:      "Stops a binding and ends its assignments.",
			params:   []param{{"purge", "boolean", "delete the binding immediately if it has no assignments left"}},
			response: client.BindingResponse{}, handle: stopBinding,
		},
		{
			methods: get, pattern: "/v1/binding/{id}/assignments", name: "binding_assignments", tag: tagBindings, roles: reader, scope: scopeNamespace,
			doc: "Lists the assignments of a binding, ordered by ID.", isQuery: true,
			response: []*client.Assignment{}, handle: bindingAssignments,
		},
	}
}

var bindingKind = resource[model.Binding]{
	name: "binding", table: state.TableBindings, all: (*state.Snapshot).Bindings, byNamespace: true,
	keyOf: func(b *model.Binding) (string, string) { return b.ID, b.Namespace },
}

func listBindings(_ *API, c *call) (any, error) {
	r := newExplanationRefresh(c)
	return readList(c, bindingKind, nil, func(s *state.Snapshot, b *model.Binding) *client.BindingStub { return bindingStub(s, b, r) })
}

// bindingKeyOf returns the key of the binding that the path names by its ID or a
// prefix of it. It returns an error if there is none, or more than one.
func bindingKeyOf(c *call) (model.JobKey, error) {
	ns, err := c.singleNamespace("binding", "")
	key := model.JobKey{Namespace: ns, ID: c.r.PathValue("id")}
	s := c.api.cfg.Server.Snapshot()
	if err != nil || s.Binding(key) != nil {
		return key, err
	}
	here := func(yield func(*model.Binding) bool) {
		for b := range s.Bindings() {
			if b.Namespace == key.Namespace && !yield(b) {
				return
			}
		}
	}
	b, err := findByPrefix(c, bindingKind.name, key.ID, here, bindingKind.keyOf)
	if failed, ok := errors.AsType[*rest.Failure](err); ok && failed.Code != rest.CodeNotFound {
		return key, err // the prefix is ambiguous
	}
	if err != nil {
		return key, rest.NotFound("binding %s not found in namespace %s", rest.Quote(key.ID), rest.Quote(key.Namespace)).WithHint("GET /v1/bindings lists them")
	}
	return b.Key(), nil
}

func getBinding(a *API, c *call) (any, error) {
	key, err := bindingKeyOf(c)
	if err != nil {
		return nil, err
	}
	evictions, err := a.evictions(c.r.Context(), key, c)
	if err != nil {
		return nil, err
	}
	return c.read(query{
		// The reasons for missing replicas depend on the clusters.
		keys: []state.Key{state.TableBindings.OfJob(key), state.TableJobEvals.OfJob(key), state.TableClusters.All()}, table: state.TableBindings, wholeTable: true,
		render: func(s *state.Snapshot) (any, uint64, error) {
			b := s.Binding(key)
			if b == nil {
				return nil, 0, rest.NotFound("binding %s not found in namespace %s", rest.Quote(key.ID), rest.Quote(key.Namespace))
			}
			out := &client.BindingStatus{BindingStub: *bindingStub(s, b, newExplanationRefresh(c)), Binding: bindingOf(b), Assignments: assignmentsOf(s, key), Evictions: evictions, RecordedBy: a.cfg.ID}
			if b.HasMissingClass() {
				out.Warnings = append(out.Warnings, b.ClassWarning())
			}
			for _, id := range s.ClaimIDs(key) {
				out.Claims = append(out.Claims, claimOf(s, s.Claim(id)))
			}
			if out.Missing = missingReplicas(s, b); out.Missing > 0 {
				out.Unbound = clusterRefusals(c, s, b, out.Missing)
				if why := bindingExplanation(s, b); why != nil {
					out.NoEviction = why.NoEviction
				}
			}
			return out, 0, nil
		},
	})
}

func bindingAssignments(_ *API, c *call) (any, error) {
	key, err := bindingKeyOf(c)
	if err != nil {
		return nil, err
	}
	return c.read(query{
		keys: []state.Key{state.TableBindings.OfJob(key)}, table: state.TableBindings, wholeTable: true,
		render: func(s *state.Snapshot) (any, uint64, error) { return assignmentsOf(s, key), 0, nil },
	})
}

func assignmentsOf(s *state.Snapshot, key model.JobKey) []*client.Assignment {
	list := []*client.Assignment{}
	for _, a := range s.BindingAssignments(key) {
		list = append(list, assignmentOf(s, a))
	}
	return list
}

// assignmentOf converts an assignment, without its binding.
func assignmentOf(s *state.Snapshot, a *model.Assignment) *client.Assignment {
	out := &client.Assignment{
		ID: a.ID, Namespace: a.Binding.Namespace, BindingID: a.Binding.ID, ClusterID: a.ClusterID, Replicas: a.Replicas, EvalID: a.EvalID,
		DesiredStatus: a.Desired.String(), DesiredDescription: a.DesiredReason, ClientStatus: a.Client.String(), ClientDescription: a.ClientText,
		Ready: a.Ready, Done: a.Done, PreemptedBy: a.PreemptedBy, Policy: a.PolicyVersion,
		CreateTime: a.CreateTime, StartTime: a.StartTime, CreateIndex: a.CreateIndex, ModifyIndex: a.ModifyIndex,
	}
	if claimant, _, ok := model.ParseClaimID(a.PreemptedBy); ok {
		out.PreemptedByBinding = claimant.String()
	}
	if a.Done {
		out.EndTime = a.EndTime
	} else if !a.Live() {
		out.StopTime = a.EndTime
	}
	if b := s.Binding(a.Binding); b != nil {
		out.Priority = int(b.Priority)
		if out.StopTime != 0 {
			out.KillDeadline = out.StopTime + b.KillTimeout
		}
	}
	if c := s.Cluster(a.ClusterID); c != nil && c.SecretHash == [32]byte{} && a.Live() && !a.Done && out.ClientDescription == "" {
		out.ClientDescription = "the cluster has no agent: the assignment is simulated and has no reports"
	}
	return out
}

// bindingOf converts a binding as it is stored.
func bindingOf(b *model.Binding) *client.Binding { return jobspec.BindingFromModel(b) }

// An explanationRefresh recomputes why bindings are pending. It checks at most
// maxClusterChecks clusters per response.
type explanationRefresh struct {
	clock      clock.Clock
	snap       *state.Snapshot // snapshot of the current response
	now        int64
	checksLeft int // remaining cluster checks; at 0, the counts of the last evaluation are returned
}

// maxClusterChecks takes about 20 ms.
const maxClusterChecks = 20_000

func newExplanationRefresh(c *call) *explanationRefresh {
	return &explanationRefresh{clock: c.api.cfg.Clock}
}

func (r *explanationRefresh) explain(s *state.Snapshot, b *model.Binding, why *model.Explanation) *model.Explanation {
	if r.snap != s {
		r.snap, r.now, r.checksLeft = s, r.clock.Now().UnixNano(), maxClusterChecks
	}
	if r.checksLeft > 0 {
		why = bindingscheduler.Recount(s, b, why, r.now)
		r.checksLeft -= max(1, why.Nodes)
	}
	return why
}

// bindingStub returns the summary of a binding.
func bindingStub(s *state.Snapshot, b *model.Binding, r *explanationRefresh) *client.BindingStub {
	out := &client.BindingStub{
		ID: b.ID, Namespace: b.Namespace, Priority: int(b.Priority), PriorityClass: b.PriorityClass,
		PreemptionPolicy: jobspec.PreemptionPolicyOf(b), Replicas: b.Replicas, Stop: b.Stopped, Version: b.Version,
		CreateIndex: b.CreateIndex, ModifyIndex: b.ModifyIndex,
	}
	held, done := false, 0
	for _, a := range s.BindingAssignments(b.Key()) {
		out.ModifyIndex = max(out.ModifyIndex, a.ModifyIndex)
		held = held || a.HoldsCapacity()
		if !a.CountsAsPlaced() {
			continue
		}
		out.Placed += a.Replicas
		if a.Done {
			done += a.Replicas
			continue
		}
		out.Ready += a.Ready
		if out.Clusters == nil {
			out.Clusters = map[string]int{}
		}
		out.Clusters[a.ClusterID] += a.Replicas
	}
	switch missing := missingReplicas(s, b); {
	case b.Stopped && held:
		out.Status = "stopping"
	case b.Stopped:
		out.Status = "stopped"
	case missing == 0 && b.Replicas > 0 && done == out.Placed && !b.Duplicated:
		out.Status = "complete"
	case missing == 0:
		out.Status = "bound"
	case out.Placed > 0:
		out.Status = "partial"
	default:
		out.Status = "pending"
	}
	if why := bindingExplanation(s, b); why != nil && (out.Status == "pending" || out.Status == "partial") {
		out.StatusDescription = r.explain(s, b, why).String()
	}
	return out
}

// missingReplicas returns the number of replicas without an assignment. For a
// duplicated binding it is the number in the latest pending evaluation, because only
// the scheduler determines the number of clusters.
func missingReplicas(s *state.Snapshot, b *model.Binding) int {
	if b.Stopped {
		return 0
	}
	missing := b.Replicas
	for _, a := range s.BindingAssignments(b.Key()) {
		if a.CountsAsPlaced() {
			missing -= a.Replicas
		}
	}
	if b.Duplicated {
		missing = 0
		if e := view.NewestWaiting(s.EvalsOfJob(b.Key())); e != nil {
			missing = e.Queued[b.ID]
		}
	}
	return max(0, missing)
}

// bindingExplanation returns the result of the latest pending evaluation, or nil if
// no replicas are missing or the binding has not been evaluated yet.
func bindingExplanation(s *state.Snapshot, b *model.Binding) *model.Explanation {
	if e := view.NewestWaiting(s.EvalsOfJob(b.Key())); e != nil {
		return e.Failed[b.ID]
	}
	return nil
}

// clusterRefusals returns for every cluster why it cannot hold the missing replicas
// of a binding, according to the current state.
func clusterRefusals(c *call, s *state.Snapshot, b *model.Binding, missing int) (list []*client.ClusterRefusal) {
	now := c.api.cfg.Clock.Now().UnixNano()
	for m := range s.Clusters() {
		r := &client.ClusterRefusal{ClusterID: m.ID}
		list = append(list, r)
		refusal := b.InfeasibleReason(m)
		switch {
		case refusal != "":
			r.Reason = "excluded by " + refusal
			continue
		case m.Down:
			r.Reason = "the cluster is down"
			continue
		}
		free, soon := s.ClusterFreeCapacity(m.ID, b.Key(), b.Priority, now)
		if r.Fits = b.FittingReplicas(&free, missing); r.Fits == missing {
			if b.SpreadText() != "" {
				r.Reason = "a single cluster does not satisfy the spread: " + b.SpreadText()
			}
			continue
		}
		needs := b.TotalAsk(missing)
		var short []string
		for d := range s.Dims().Len() {
			if needs[d] > max(0, free[d]) {
				name := s.Dims().Name(d)
				short = append(short, fmt.Sprintf("insufficient %s: %d required, %d free", name, needs[d], max(0, free[d])))
			}
		}
		r.Reason = strings.Join(short, ", ")
		if b.FittingReplicas(&soon, missing) == missing {
			r.Reason += "; sufficient capacity becomes free once stopping assignments have ended"
		}
	}
	return list
}

// recentDecisions is the maximum number of decisions from which evictions are listed.
const recentDecisions = 20

// evictions returns the recent evictions by a binding and of a binding. Those of
// namespaces that the caller may not read are omitted.
func (a *API) evictions(ctx context.Context, key model.JobKey, c *call) (list []*client.BindingEviction, err error) {
	decisions, err := a.cfg.Server.Decisions(ctx, eventsink.DecisionQuery{Concerns: key, Limit: recentDecisions})
	if err != nil {
		return nil, err
	}
	for _, d := range decisions {
		by := model.JobKey{Namespace: d.Namespace, ID: d.JobID}
		for _, v := range d.Victims {
			victim := model.JobKey{Namespace: v.Namespace, ID: v.JobID}
			if v.ClusterID == "" || by != key && victim != key || !c.canSee(by.Namespace) || !c.canSee(victim.Namespace) {
				continue
			}
			list = append(list, &client.BindingEviction{
				Time: d.Time, ClusterID: v.ClusterID, Namespace: victim.Namespace, BindingID: victim.ID, Replicas: v.Replicas,
				Priority: int(v.Priority), ByNamespace: by.Namespace, ByBindingID: by.ID, ByPriority: int(d.Priority), Policy: d.PolicyVersion,
			})
		}
	}
	return list, nil
}

func putBinding(a *API, c *call, req *client.Binding) (any, error) {
	id := c.r.PathValue("id")
	if err := checkPathID("binding", id, req.ID); err != nil {
		return nil, err
	}
	ns, err := c.singleNamespace("binding", req.Namespace)
	if err != nil {
		return nil, err
	}
	req.ID, req.Namespace = id, ns
	b, err := jobspec.BindingToModel(req)
	if err != nil {
		return nil, bindingProblems(err)
	}
	o := endpoint.RegisterOptions{ExplicitPriority: req.Priority != nil, ExplicitPreemption: req.PreemptionPolicy != ""}
	if o.Key, err = idempotencyKey(c); err != nil {
		return nil, err
	}
	return c.bindingResponse(a.cfg.Server.RegisterBinding(c.writeContext(), b, o))
}

// bindingProblems returns an error that lists every problem of a binding.
func bindingProblems(err error) error {
	problems, ok := errors.AsType[jobspec.Problems](err)
	if !ok {
		return rest.Invalid("%v", err)
	}
	list, texts := make([]any, len(problems)), make([]string, len(problems))
	for i := range problems {
		list[i], texts[i] = problems[i], problems[i].String()
	}
	return rest.Invalid("invalid binding: %s", strings.Join(texts, "; ")).With("Problems", list)
}

func stopBinding(a *API, c *call) (any, error) {
	key, err := bindingKeyOf(c)
	if err != nil {
		return nil, err
	}
	o := endpoint.StopOptions{}
	if o.Purge, err = queryFlag(c, "purge"); err != nil {
		return nil, err
	}
	if o.Key, err = idempotencyKey(c); err != nil {
		return nil, err
	}
	return c.bindingResponse(a.cfg.Server.StopBinding(c.writeContext(), key, o))
}

// bindingResponse returns the response to a change of a binding.
func (c *call) bindingResponse(r *endpoint.Registered, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c.setIndexHeaders(r.Index)
	return &client.BindingResponse{
		EvalID: r.EvalID, BindingModifyIndex: r.JobModifyIndex, Index: r.Index, Warnings: r.Warnings, Replayed: r.Replayed,
	}, nil
}
