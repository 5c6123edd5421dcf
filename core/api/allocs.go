package api

import (
	"cmp"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/api/view"
	"github.com/cede-scheduler/cede/core/certificate"
	"github.com/cede-scheduler/cede/core/decision"
	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

const (
	tagAllocs = "allocations"
	tagEvals  = "evaluations"
)

func allocRoutes() []route {
	return []route{
		{
			methods: get, pattern: "/v1/allocations", name: "allocations_list", tag: tagAllocs, roles: []acl.Role{acl.Read}, scope: scopeNamespace,
			doc: "Lists allocations, ordered by job, then by ID.", isQuery: true, isPaged: true,
			params:   []param{{"resources", "boolean", "with AllocatedResources"}},
			response: []*client.AllocationStub{}, handle: listAllocs,
		},
		{
			methods: get, pattern: "/v1/allocation/{id}", name: "allocation_get", tag: tagAllocs, roles: []acl.Role{acl.Read}, scope: scopeNamespace,
			doc: "Returns an allocation and its job. The ID may be any unique prefix.", isQuery: true,
			response: client.Allocation{}, handle: getAlloc,
		},
		{
			methods: get, pattern: "/v1/allocation/{id}/decisions", name: "allocation_decisions", tag: tagAllocs, roles: []acl.Role{acl.Read}, scope: scopeNamespace,
			doc: "Lists the decisions in which an allocation was placed with evictions or was evicted, newest first, with their reasons. " +
				"They are kept as long as the history of the server, so that the full ID works after the allocation was garbage-collected.",
			response: []*client.Decision{}, handle: allocDecisions,
		},
		{
			methods: get, pattern: "/v1/allocation/{id}/what-if", name: "allocation_what_if", tag: tagAllocs, roles: []acl.Role{acl.Read}, scope: scopeNamespace,
			doc: "Returns the smallest changes under which the newest decision that evicted an allocation would have spared it: a higher priority, a later time, a smaller request. " +
				"The server computes the state of then from its log, and makes the decision again with each change, at most 64 times in all. " +
				"It answers one such request at a time. The error is a conflict if the log no longer reaches back, or the decision cannot be reproduced.",
			response: client.WhatIf{}, handle: allocWhatIf,
		},
		{
			methods: get, pattern: "/v1/allocation/{id}/certificate", name: "allocation_certificate", tag: tagAllocs, roles: []acl.Role{acl.Operate}, isBinary: true,
			doc: "Returns a certificate of the newest decision that evicted an allocation, or others for it. The server makes the decision again, and signs the calls of the policies, their answers and their code with its key. " +
				"`cede decision verify` makes the calls again. The error is a conflict if the decision cannot be reproduced, or an executable decided.",
			handle: allocCertificate,
		},
		{
			methods: get, pattern: "/v1/decision-key", name: "decision_key", tag: tagAllocs, roles: []acl.Role{acl.Read},
			doc:      "Returns the public key of the server that handles the request, which verifies its certificates of decisions. Each server has its own.",
			response: client.DecisionKey{}, handle: decisionKey,
		},
		{
			methods: get, pattern: "/v1/decision-keys", name: "decision_keys", tag: tagAllocs, roles: []acl.Role{acl.Read},
			doc:     "Returns the public keys of all servers that the pool has had, which verify their certificates of decisions.",
			isQuery: true, response: []*client.DecisionKey{}, handle: decisionKeys,
		},
		{
			methods: post, pattern: "/v1/allocation/{id}/stop", name: "allocation_stop", tag: tagAllocs, roles: []acl.Role{acl.Submit}, scope: scopeNamespace, leaderOnly: true,
			doc:      "Stops an allocation. The scheduler replaces it.",
			response: client.AllocStopResponse{}, handle: stopAlloc,
		},
	}
}

func evalRoutes() []route {
	return []route{
		{
			methods: get, pattern: "/v1/evaluations", name: "evaluations_list", tag: tagEvals, roles: []acl.Role{acl.Read}, scope: scopeNamespace,
			doc: "Lists evaluations, ordered by ID.", isQuery: true, isPaged: true,
			params: []param{
				{"status", "string", "only evaluations in this status"},
				{"job", "string", "only evaluations of the job with this ID"},
			},
			response: []*client.Evaluation{}, handle: listEvals,
		},
		{
			methods: get, pattern: "/v1/evaluation/{id}", name: "evaluation_get", tag: tagEvals, roles: []acl.Role{acl.Read}, scope: scopeNamespace,
			doc: "Returns an evaluation and, if placements failed, the reasons. The ID may be any unique prefix.", isQuery: true,
			params:   []param{{"related", "boolean", "include the evaluations that it created and the one that created it"}},
			response: client.Evaluation{}, handle: getEval,
		},
		{
			methods: get, pattern: "/v1/evaluation/{id}/allocations", name: "evaluation_allocations", tag: tagEvals, roles: []acl.Role{acl.Read}, scope: scopeNamespace,
			doc: "Lists the allocations that an evaluation placed.", isQuery: true,
			response: []*client.AllocationStub{}, handle: evalAllocs,
		},
		{
			methods: get, pattern: "/v1/evaluation/{id}/decisions", name: "evaluation_decisions", tag: tagEvals, roles: []acl.Role{acl.Read}, scope: scopeNamespace,
			doc:      "Lists the decisions to evict of an evaluation, newest first, with their reasons.",
			response: []*client.Decision{}, handle: evalDecisions,
		},
		{
			methods: remove, pattern: "/v1/evaluations", name: "evaluations_cancel", tag: tagEvals, roles: []acl.Role{acl.Submit}, scope: scopeNamespace, leaderOnly: true,
			doc:     "Cancels pending and blocked evaluations, all of them or none. Evaluations that are being processed, complete or failed are refused. Cancelled evaluations stay visible until they are garbage-collected.",
			request: client.EvalCancelRequest{}, response: client.EvalCancelResponse{}, handle: withBody(cancelEvals),
		},
	}
}

// byJob yields the key of every job that has allocations, including purged jobs, in
// ascending order.
func byJob(s *state.Snapshot) iter.Seq[model.JobKey] {
	return func(yield func(model.JobKey) bool) {
		var last model.JobKey
		for a := range s.Allocs() {
			key := a.Job.Key()
			if key != last {
				if !yield(key) {
					return
				}
				last = key
			}
		}
	}
}

func listAllocs(_ *API, c *call) (any, error) {
	part, err := c.page()
	if err != nil {
		return nil, err
	}
	resources, err := queryFlag(c, "resources")
	if err != nil {
		return nil, err
	}
	stubOf := func(s *state.Snapshot, a *model.Allocation) *client.AllocationStub {
		stub := view.AllocStub(s, a)
		if resources {
			stub.AllocatedResources = view.AllocatedResources(a.Group)
		}
		return stub
	}
	return c.read(query{
		keys: []state.Key{state.TableAllocs.All(), state.TableNodes.All()}, table: state.TableAllocs, wholeTable: true,
		render: func(s *state.Snapshot) (any, uint64, error) {
			p := pager[*client.AllocationStub]{page: part}
			ns, changed := c.namespace(), uint64(0)
			var row []*model.Allocation
			for key := range byJob(s) {
				if (ns != allNamespaces && ns != key.Namespace) || !c.canSee(key.Namespace) {
					continue
				}
				row = s.AppendJobAllocs(row[:0], key)
				slices.SortFunc(row, func(a, b *model.Allocation) int { return strings.Compare(a.ID, b.ID) })
				more := true
				for _, a := range row {
					if !strings.HasPrefix(a.ID, queryPrefix(c)) {
						continue
					}
					changed = max(changed, view.AllocChanged(s, a))
					if more = p.add(pageKey(key.Namespace, key.ID, a.ID), func() *client.AllocationStub { return stubOf(s, a) }); !more {
						break
					}
				}
				if !more {
					break
				}
			}
			return p.result(c), changed, nil
		},
	})
}

var allocKind = resource[model.Allocation]{
	name: "allocation", table: state.TableAllocs, get: (*state.Snapshot).Alloc, all: (*state.Snapshot).Allocs,
	keyOf: func(a *model.Allocation) (string, string) { return a.ID, a.Job.Namespace },
}

var evalKind = resource[model.Evaluation]{
	name: "evaluation", table: state.TableEvals, get: (*state.Snapshot).Eval, all: (*state.Snapshot).Evals,
	keyOf: func(e *model.Evaluation) (string, string) { return e.ID, e.Namespace },
}

func getAlloc(api *API, c *call) (any, error) {
	var node []state.Key
	if a, err := allocKind.find(api.cfg.Server.Snapshot(), c, c.r.PathValue("id")); err == nil && a.Group.Disconnect != nil {
		node = append(node, state.TableNodes.Of(a.NodeID))
	}
	return readOne(c, allocKind, func(s *state.Snapshot, a *model.Allocation) (any, uint64) {
		return view.Alloc(s, a, nil), view.AllocChanged(s, a)
	}, node...)
}

func stopAlloc(a *API, c *call) (any, error) {
	alloc, err := allocKind.find(a.cfg.Server.Snapshot(), c, c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	r, err := a.cfg.Server.StopAlloc(c.writeContext(), alloc.ID)
	if err != nil {
		return nil, err
	}
	c.setIndexHeaders(r.Index)
	return &client.AllocStopResponse{EvalID: r.EvalID, Index: r.Index}, nil
}

func listEvals(_ *API, c *call) (any, error) {
	q := c.r.URL.Query()
	status, job := q.Get("status"), q.Get("job")
	asked := func(e *model.Evaluation) bool {
		return cmp.Or(status, e.Status.String()) == e.Status.String() && cmp.Or(job, e.JobID) == e.JobID
	}
	return readList(c, evalKind, asked, func(_ *state.Snapshot, e *model.Evaluation) *client.Evaluation { return view.Eval(e) })
}

func getEval(_ *API, c *call) (any, error) {
	related, err := queryFlag(c, "related")
	if err != nil {
		return nil, err
	}
	return readOne(c, evalKind, func(s *state.Snapshot, e *model.Evaluation) (any, uint64) {
		out := view.Eval(e)
		if related {
			addRelated(s, e, out)
		}
		return out, e.ModifyIndex
	})
}

// addRelated appends the evaluations that e refers to and those that refer to e.
func addRelated(s *state.Snapshot, e *model.Evaluation, out *client.Evaluation) {
	for _, o := range s.EvalsOfJob(e.JobKey()) {
		named := o.ID == e.Previous || o.ID == e.Blocked || o.ID == e.SupersededBy
		names := o.Previous == e.ID || o.Blocked == e.ID || o.SupersededBy == e.ID
		if o.ID == e.ID || (!named && !names) {
			continue
		}
		if o.Previous == e.ID && o.ID != e.Blocked {
			out.NextEval = o.ID
		}
		out.RelatedEvals = append(out.RelatedEvals, view.EvalStub(o))
	}
}

func cancelEvals(a *API, c *call, r *client.EvalCancelRequest) (any, error) {
	if r.Filter != "" {
		return nil, rest.Unsupported("cancelling evaluations by a filter is not supported").WithHint("list the evaluations in EvalIDs; GET /v1/evaluations?status=pending returns them")
	}
	index, err := a.cfg.Server.CancelEvals(c.writeContext(), r.EvalIDs, c.canSee)
	if err != nil {
		return nil, err
	}
	c.setIndexHeaders(index)
	return &client.EvalCancelResponse{Count: len(r.EvalIDs), Index: index}, nil
}

func evalAllocs(_ *API, c *call) (any, error) {
	return readOne(c, evalKind, func(s *state.Snapshot, e *model.Evaluation) (any, uint64) {
		mine := slices.DeleteFunc(s.AppendJobAllocs(nil, e.JobKey()), func(a *model.Allocation) bool { return a.EvalID != e.ID })
		list, changed := view.AllocStubs(s, mine)
		return list, max(changed, e.ModifyIndex)
	}, state.TableAllocs.All(), state.TableNodes.All())
}

// maxDecisions is how many decisions a response lists.
const maxDecisions = 100

func allocDecisions(a *API, c *call) (any, error) {
	q := eventsink.DecisionQuery{AllocID: c.r.PathValue("id"), Limit: maxDecisions}
	alloc, err := allocKind.find(a.cfg.Server.Snapshot(), c, q.AllocID)
	if err == nil {
		// The range spares a scan of the whole history. An allocation that runs may be a
		// victim of later decisions that were only observed.
		if q.AllocID, q.From = alloc.ID, alloc.CreateIndex; !alloc.Live() {
			q.Before = alloc.ModifyIndex + 1
		}
	}
	return decisionsOf(a, c, q, err)
}

// allocWhatIf is about the newest decision in which an allocation is a victim.
func allocWhatIf(a *API, c *call) (any, error) {
	d, victim, err := newestEviction(a, c)
	if err != nil {
		return nil, err
	}
	answer, err := a.cfg.Server.WhatIf(c.r.Context(), d, victim.AllocID)
	if err != nil {
		return nil, err
	}
	return view.WhatIf(d, answer.Redact(c.canSee)), nil
}

// newestEviction returns the newest decision that evicted the allocation of the request, and
// its record of the victim.
func newestEviction(a *API, c *call) (d *eventsink.Decision, victim *events.Victim, err error) {
	const hint = "it was not evicted, or the history of this server no longer reaches back"
	_, err = newestDecision(a, c, hint, func(found *eventsink.Decision, id string) bool {
		for i := range found.Victims {
			if v := &found.Victims[i]; v.AllocID == id && !found.Observed && c.canSee(v.Namespace) {
				d, victim = found, v
			}
		}
		return d != nil
	})
	return d, victim, err
}

// newestDecision returns the newest decision about the allocation of the request that is
// selected. The hint is that of the error if there is none.
func newestDecision(a *API, c *call, hint string, selects func(d *eventsink.Decision, id string) bool) (*eventsink.Decision, error) {
	q := eventsink.DecisionQuery{AllocID: c.r.PathValue("id"), Limit: maxDecisions}
	alloc, missing := allocKind.find(a.cfg.Server.Snapshot(), c, q.AllocID)
	if missing == nil {
		q.AllocID, q.From, q.Before = alloc.ID, alloc.CreateIndex, alloc.ModifyIndex+1
	}
	found, err := a.cfg.Server.Decisions(c.r.Context(), q)
	if err != nil {
		return nil, err
	}
	for _, d := range found {
		if selects(d, q.AllocID) {
			return d, nil
		}
	}
	if missing != nil {
		return nil, missing
	}
	return nil, rest.NotFound("no recorded decision of this kind concerns allocation %s", rest.Quote(q.AllocID)).WithHint("%s", hint)
}

// allocCertificate sends a certificate. It contains objects of all namespaces, so that the
// route requires a role that reads them all.
func allocCertificate(a *API, c *call) (any, error) {
	const hint = "it was not evicted and evicted none, or the history of this server no longer reaches back"
	d, err := newestDecision(a, c, hint, func(d *eventsink.Decision, _ string) bool { return !d.Observed })
	if err != nil {
		return nil, err
	}
	file, err := a.cfg.Server.Certify(c.r.Context(), d)
	if err != nil {
		return nil, err
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(len(file)))
	h.Set("Content-Disposition", `attachment; filename="decision.cert"`)
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(file) // an error means that the client disconnected
	return responded, nil
}

func decisionKey(a *API, _ *call) (any, error) {
	key := a.cfg.Server.DecisionKey()
	if key == nil {
		return nil, rest.NotFound("this server has no key to sign certificates with")
	}
	return encodeKey(key)
}

func decisionKeys(_ *API, c *call) (any, error) {
	return c.read(query{
		keys: []state.Key{state.TableSigners.All()}, table: state.TableSigners, wholeTable: true,
		render: func(s *state.Snapshot) (any, uint64, error) {
			list := []*client.DecisionKey{}
			for _, signer := range s.Signers() {
				key, err := encodeKey(signer.Key[:])
				if err != nil {
					return nil, 0, err
				}
				key.ServerID, key.Time = signer.ServerID, signer.Time
				list = append(list, key)
			}
			return list, 0, nil
		},
	})
}

func encodeKey(key ed25519.PublicKey) (*client.DecisionKey, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	return &client.DecisionKey{ID: certificate.KeyID(key), PEM: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}, nil
}

func evalDecisions(a *API, c *call) (any, error) {
	q := eventsink.DecisionQuery{EvalID: c.r.PathValue("id"), Limit: maxDecisions}
	snap := a.cfg.Server.Snapshot()
	eval, err := evalKind.find(snap, c, q.EvalID)
	if err == nil {
		q.OfEval(snap, eval)
	}
	return decisionsOf(a, c, q, err)
}

// decisionsOf returns the decisions that a query selects and of which the caller may read
// the placement or a victim. If there are none, it returns missing: the error if the state
// lacks the subject of the query, which may have been garbage-collected.
func decisionsOf(a *API, c *call, q eventsink.DecisionQuery, missing error) (any, error) {
	found, err := a.cfg.Server.Decisions(c.r.Context(), q)
	if err != nil {
		return nil, err
	}
	list := []*client.Decision{}
	for _, d := range found {
		if payload := decision.Redact(&d.DecisionPayload, d.Namespace, c.canSee); payload != nil {
			list = append(list, view.Decision(d, payload))
		}
	}
	if len(list) == 0 && missing != nil {
		return nil, missing
	}
	return list, nil
}
