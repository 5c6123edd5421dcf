package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/api/view"
	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

const tagNomad = "for clients of Nomad"

// nomadRoutes returns routes that only clients of Nomad use. docs/reference/nomad-api.md
// lists every call of Nomad's client with its effect.
func nomadRoutes() []route {
	reader, submitter := []acl.Role{acl.Read}, []acl.Role{acl.Submit}
	return []route{
		{
			methods: post, pattern: "/v1/search", name: "search", tag: tagNomad, roles: reader, scope: scopeNamespace, isRead: true,
			doc:     "Lists jobs, allocations, evaluations, nodes and namespaces whose ID has a prefix, at most 20 of each.",
			request: client.SearchRequest{}, response: client.SearchResponse{}, handle: withBody(search),
		},
		{
			methods: get, pattern: "/v1/regions", name: "regions_list", tag: tagNomad, roles: reader, scope: scopePublic,
			doc: "Lists regions. A pool of servers is one region.", response: []string{}, handle: regions,
		},
		{
			methods: get, pattern: "/v1/job/{id}/scale", name: "job_scale_status", tag: tagNomad, roles: reader, scope: scopeNamespace,
			doc: "Counts the instances of a job by task group.", isQuery: true, response: client.JobScaleStatus{}, handle: scaleStatus,
		},
		{
			methods: post, pattern: "/v1/job/{id}/scale", name: "job_scale", tag: tagNomad, roles: submitter, scope: scopeNamespace, leaderOnly: true,
			doc:     "Changes the number of instances of a task group.",
			request: client.JobScaleRequest{}, response: client.JobRegisterResponse{}, handle: withBody(scaleJob),
		},
		{
			methods: post, pattern: "/v1/job/{id}/revert", name: "job_revert", tag: tagNomad, roles: submitter, scope: scopeNamespace, leaderOnly: true,
			doc:     "Registers an earlier version of a job again, as a new version.",
			request: client.JobRevertRequest{}, response: client.JobRegisterResponse{}, handle: revertJob,
		},
		{
			methods: get, pattern: "/v1/operator/autopilot/health", name: "autopilot_health", tag: tagNomad, roles: reader, leaderOnly: true,
			doc: "Returns the health of the servers, as the leader observes it.", response: client.ServersHealth{}, handle: serversHealth,
		},
		{
			methods: get, pattern: "/v1/job/{id}/deployment", name: "job_deployment", tag: tagNomad, roles: reader, scope: scopeNamespace,
			doc: "Returns null: jobs are updated without deployments.", response: &struct{}{}, handle: noDeployment,
		},
		emptyList("/v1/job/{id}/deployments", "job_deployments", "Returns an empty list: jobs are updated without deployments."),
		emptyList("/v1/deployments", "deployments_list", "Returns an empty list: jobs are updated without deployments."),
		emptyList("/v1/scaling/policies", "scaling_policies_list", "Returns an empty list: there are no scaling policies."),
		emptyList("/v1/volumes", "volumes_list", "Returns an empty list: there are no volumes."),
	}
}

// emptyList returns the route of a list of objects that do not exist here, so that
// commands that show them among others work.
func emptyList(pattern, name, doc string) route {
	return route{
		methods: get, pattern: pattern, name: name, tag: tagNomad, roles: []acl.Role{acl.Read}, scope: scopeNamespace, doc: doc,
		isQuery: true, response: []string{},
		handle: func(_ *API, c *call) (any, error) {
			return c.read(query{render: func(*state.Snapshot) (any, uint64, error) { return []string{}, 0, nil }})
		},
	}
}

// noDeployment returns null, from which Nomad's client makes no deployment.
func noDeployment(a *API, c *call) (any, error) {
	c.setStateHeaders(a.cfg.Server.Snapshot())
	return json.RawMessage("null"), nil
}

func regions(a *API, c *call) (any, error) {
	c.setStateHeaders(a.cfg.Server.Snapshot())
	return []string{a.cfg.Region}, nil
}

// maxMatches is the maximum number of matches that a search returns for each context.
const maxMatches = 20

// searchContexts returns the IDs of each context, in the order of the snapshot.
var searchContexts = map[string]func(s *state.Snapshot, c *call, match func(namespace, id string) bool){
	"jobs": func(s *state.Snapshot, _ *call, match func(namespace, id string) bool) {
		for j := range s.Jobs() {
			if !match(j.Namespace, j.ID) {
				return
			}
		}
	},
	"allocs": func(s *state.Snapshot, _ *call, match func(namespace, id string) bool) {
		for a := range s.Allocs() {
			if !match(a.Job.Namespace, a.ID) {
				return
			}
		}
	},
	"evals": func(s *state.Snapshot, _ *call, match func(namespace, id string) bool) {
		for e := range s.Evals() {
			if !match(e.Namespace, e.ID) {
				return
			}
		}
	},
	"nodes": func(s *state.Snapshot, c *call, match func(namespace, id string) bool) {
		if c.token != nil && c.token.Namespace != "" {
			return // nodes belong to the whole cluster
		}
		for n := range s.Nodes() {
			if !match("", n.ID) {
				return
			}
		}
	},
	"namespaces": func(s *state.Snapshot, c *call, match func(namespace, id string) bool) {
		for _, n := range namespacesOf(s) {
			if c.canSee(n.Name) && !match("", n.Name) {
				return
			}
		}
	},
}

// nomadContexts are the contexts of Nomad without an equivalent. They match nothing.
var nomadContexts = []string{"deployment", "node_pools", "quotas", "recommendations", "scaling_policy", "plugins", "vars", "volumes", "host_volumes"}

// maxPrefix is the maximum length of a searched prefix, in bytes. IDs are shorter.
const maxPrefix = 256

func search(_ *API, c *call, req *client.SearchRequest) (any, error) {
	if len(req.Prefix) > maxPrefix {
		return nil, rest.Invalid("invalid Prefix of %d bytes: it must have at most %d", len(req.Prefix), maxPrefix).
			WithHint("use the first characters of an ID").With("Field", "Prefix")
	}
	snap, err := c.snapshot()
	if err != nil {
		return nil, err
	}
	out := &client.SearchResponse{Matches: map[string][]string{}, Truncations: map[string]bool{}}
	switch {
	case req.Context == "" || req.Context == "all":
		for name := range searchContexts {
			out.Matches[name] = nil
		}
	case searchContexts[req.Context] != nil || slices.Contains(nomadContexts, req.Context):
		out.Matches[req.Context] = nil
	default:
		return nil, rest.Invalid("unknown context %s", rest.Quote(req.Context)).WithHint("use all, jobs, allocs, evals, nodes or namespaces").With("Field", "Context")
	}
	for name := range out.Matches {
		out.Matches[name], out.Truncations[name] = searchContext(snap, c, name, req.Prefix)
	}
	c.setStateHeaders(snap)
	return out, nil
}

// searchContext returns the IDs of one context with a prefix, and whether there are
// more.
func searchContext(s *state.Snapshot, c *call, name, prefix string) (list []string, truncated bool) {
	list = []string{}
	each := searchContexts[name]
	if each == nil {
		return list, false
	}
	requested := c.namespace()
	each(s, c, func(namespace, id string) bool {
		visible := namespace == "" || c.canSee(namespace) && (requested == allNamespaces || requested == namespace)
		if visible && strings.HasPrefix(id, prefix) {
			truncated = len(list) == maxMatches
			if !truncated {
				list = append(list, id)
			}
		}
		return !truncated
	})
	slices.Sort(list)
	return list, truncated
}

func scaleStatus(_ *API, c *call) (any, error) {
	return readJob(c, func(s *state.Snapshot, j *model.Job) (any, uint64) {
		summary, changed := view.JobSummary(s, j)
		out := &client.JobScaleStatus{
			JobID: j.ID, Namespace: j.Namespace, JobCreateIndex: j.CreateIndex, JobModifyIndex: j.ModifyIndex, JobStopped: j.Stopped,
			TaskGroups: map[string]client.TaskGroupScaleStatus{},
		}
		for _, g := range j.Groups {
			n := summary.Summary[g.Name]
			out.TaskGroups[g.Name] = client.TaskGroupScaleStatus{
				Desired: g.Count, Placed: n.Running + n.Starting + n.Unknown, Running: n.Running, Healthy: n.Running,
			}
		}
		return out, changed
	})
}

// maxScaledCount is the maximum number of instances of a group. The validation of the
// job applies the actual limit.
const maxScaledCount = 1 << 30

func scaleJob(a *API, c *call, req *client.JobScaleRequest) (any, error) {
	if err := checkPathID("job", c.r.PathValue("id"), req.Target["Job"]); err != nil {
		return nil, err
	}
	if err := checkCount(req); err != nil {
		return nil, err
	}
	return changeJob(a, c, "scale", req, func(_ *state.Snapshot, current *model.Job) (*client.Job, error) {
		if req.JobModifyIndex != 0 && req.JobModifyIndex != current.ModifyIndex {
			return nil, staleJob(req.JobModifyIndex, current)
		}
		job := jobspec.FromModel(current)
		name := req.Target["Group"]
		if name == "" && len(job.TaskGroups) == 1 {
			name = job.TaskGroups[0].Name
		}
		at := slices.IndexFunc(job.TaskGroups, func(g *client.TaskGroup) bool { return g.Name == name })
		if at < 0 {
			return nil, rest.NotFound("job %s has no group %s", rest.Quote(current.ID), rest.Quote(name)).WithHint("Target must name a group of the job: its groups are %s", groupNames(current))
		}
		job.TaskGroups[at].Count = new(int(*req.Count))
		return job, nil
	})
}

// checkCount returns an error if a request has no valid count. A request that only
// records a scaling event is valid in Nomad, but events are not stored here.
func checkCount(req *client.JobScaleRequest) error {
	isEvent := req.Error || req.Message != "" || len(req.Meta) > 0
	switch {
	case req.Count == nil && isEvent:
		return rest.Unsupported("Count is required: scaling events without a change are not stored")
	case req.Count == nil:
		return rest.Invalid("Count is required").WithHint("set Count to the number of instances").With("Field", "Count")
	case *req.Count < 0 || *req.Count > maxScaledCount:
		return rest.Invalid("invalid Count %d: it must be between 0 and %d", *req.Count, maxScaledCount).With("Field", "Count")
	}
	return nil
}

func groupNames(j *model.Job) string {
	names := make([]string, len(j.Groups))
	for i, g := range j.Groups {
		names[i] = g.Name
	}
	return strings.Join(names, ", ")
}

// staleJob returns the error of a request that requires another index of a job.
func staleJob(required uint64, j *model.Job) error {
	f := rest.Invalid("job %s was changed (Enforcing job modify index %d: it is at index %d)", rest.Quote(j.ID), required, j.ModifyIndex)
	f.Code = client.CodeConflict
	return f.WithHint("read the job again")
}

func revertJob(a *API, c *call) (any, error) {
	var req client.JobRevertRequest
	if _, err := c.decodeJobBody(&req); err != nil {
		return nil, err
	}
	return changeJob(a, c, "revert", &req, func(s *state.Snapshot, current *model.Job) (*client.Job, error) {
		switch {
		case req.EnforcePriorVersion != nil && *req.EnforcePriorVersion != current.Version:
			f := rest.Invalid("job %s is at version %d, and the request requires %d", rest.Quote(current.ID), current.Version, *req.EnforcePriorVersion)
			f.Code = client.CodeConflict
			return nil, f
		case req.JobVersion == current.Version:
			return nil, rest.Invalid("job %s is at version %d already", rest.Quote(current.ID), req.JobVersion).With("Field", "JobVersion")
		}
		for _, version := range s.JobVersions(current.Key()) {
			if version.Version == req.JobVersion {
				return jobspec.FromModel(version), nil
			}
		}
		return nil, rest.NotFound("job %s has no version %d", rest.Quote(current.ID), req.JobVersion).WithHint("GET /v1/job/ID/versions lists the stored versions")
	})
}

// changeJob registers a new version of the job that the path names. change returns the
// version from the current one.
func changeJob(a *API, c *call, operation string, req any, change func(*state.Snapshot, *model.Job) (*client.Job, error)) (any, error) {
	key, err := c.jobKey()
	if err != nil {
		return nil, err
	}
	o := endpoint.ChangeOptions{Request: changeHash(operation, key, req)}
	if o.Key, err = idempotencyKey(c); err != nil {
		return nil, err
	}
	var warnings []string
	r, err := a.cfg.Server.ChangeJob(c.writeContext(), key, o, func(s *state.Snapshot, current *model.Job) (*model.Job, error) {
		next, err := change(s, current)
		if err != nil {
			return nil, err
		}
		job, err := jobspec.ToModel(next)
		if err != nil {
			return nil, jobProblems(err)
		}
		warnings = jobspec.Warnings(next, job)
		return job, nil
	})
	if err != nil {
		return nil, err
	}
	return registerResponse(c, r, warnings), nil
}

// changeHash returns a hash that distinguishes requests that change a stored job.
func changeHash(operation string, key model.JobKey, req any) [32]byte {
	body, _ := json.Marshal(req) // it was decoded from JSON: cannot fail
	return sha256.Sum256(fmt.Appendf(nil, "%s %q %q %s", operation, key.Namespace, key.ID, body))
}

// agentHealth returns the health of the server and of the node that run in this
// process, each if it runs here.
func agentHealth(a *API, c *call) (any, error) {
	ctx := c.writeContext()
	out := &client.AgentHealths{Server: &client.AgentHealth{Ok: true, Message: "ok"}}
	if failed := failedChecks(ctx, a); len(failed) > 0 {
		out.Server = &client.AgentHealth{Message: strings.Join(failed, "; ")}
	}
	if a.cfg.Process.NodeHealth != nil {
		out.Client = a.cfg.Process.NodeHealth()
	}
	status := http.StatusOK
	if !out.Server.Ok || out.Client != nil && !out.Client.Ok {
		status = http.StatusServiceUnavailable
	}
	rest.WriteJSON(c.w, status, out)
	return responded, nil
}

// failedChecks returns the failed conditions of the server's health.
func failedChecks(ctx context.Context, a *API) (failed []string) {
	for _, check := range a.cfg.Server.Ready(ctx) {
		if !check.OK {
			failed = append(failed, check.Name+": "+check.Detail)
		}
	}
	return failed
}

func serversHealth(a *API, c *call) (any, error) {
	r, err := a.replicated()
	if err != nil {
		return nil, err
	}
	c.setStateHeaders(a.cfg.Server.Snapshot())
	stats, members, observed := r.Stats(), map[string]Member{}, a.cfg.Server.ServerHealth()
	for _, m := range a.memberList() {
		members[m.Name] = m
	}
	out := &client.ServersHealth{Healthy: true}
	healthy := 0
	for _, s := range a.servers() {
		m := members[s.ID]
		h := &client.ServerHealth{
			ID: s.ID, Name: s.Node, Address: s.Address, SerfStatus: m.Status, Version: m.Tags[tagBuild], Leader: s.Leader, Voter: s.Voter,
			LastContact: "0s", Healthy: true, StableSince: a.startTime.UTC(),
		}
		if o, known := observed[s.ID]; known {
			h.LastContact, h.LastTerm, h.LastIndex, h.Healthy, h.StableSince = o.LastContact.String(), o.LastTerm, o.LastIndex, o.Healthy, o.StableSince.UTC()
		} else {
			h.LastTerm, h.LastIndex = stats.Term, stats.LastIndex
		}
		out.Servers = append(out.Servers, h)
		out.Healthy = out.Healthy && h.Healthy
		if s.Leader {
			out.Leader = s.ID
		}
		if s.Voter {
			out.Voters = append(out.Voters, s.ID)
			if h.Healthy {
				healthy++
			}
		}
	}
	out.FailureTolerance = max(0, healthy-(len(out.Voters)/2+1))
	return out, nil
}

// An unsupported operation is one that Nomad has and cede does not.
type unsupported struct {
	path string // prefix of the path; * stands for one segment
	what string // subject of the error
	hint string
}

// unsupportedPaths lists the paths of unsupported operations. The first match counts.
var unsupportedPaths = []unsupported{
	{"/v1/job/*/dispatch", "parameterized jobs are", "register a job for each parameter set"},
	{"/v1/job/*/periodic/force", "periodic jobs are", "register a job for each run, such as from a timer of the host"},
	{"/v1/job/*/stable", "marking versions of jobs as stable is", ""},
	{"/v1/job/*/versions/", "tags of versions of jobs are", ""},
	{"/v1/job/*/submission", "the source of job files is not stored: reading it is", "GET /v1/job/ID returns the job"},
	{"/v1/job/*/services", "services are", ""},
	{"/v1/job/*/action", "actions of jobs are", ""},
	{"/v1/jobs/statuses", "listing the statuses of selected jobs is", "GET /v1/jobs lists jobs with their statuses"},
	{"/v1/deployment", "deployments are", "jobs are updated in place or by replacement; GET /v1/job/ID/allocations shows the progress"},
	{"/v1/scaling/policy", "scaling policies are", "POST /v1/job/ID/scale changes the number of instances"},
	{"/v1/search/fuzzy", "fuzzy search is", "POST /v1/search finds IDs by prefix"},
	{"/v1/client/fs/", "access to the files of allocations is", "the output of tasks is served: GET /v1/allocation/ID/logs"},
	{"/v1/client/stats", "resource usage of nodes is", "the metrics listener of the node exposes it"},
	{"/v1/client/gc", "garbage collection on nodes is", "nodes remove the files of allocations that servers have removed"},
	{"/v1/client/metadata", "dynamic metadata of nodes is", "set client.meta in the configuration of the node"},
	{"/v1/client/identity", "identities of nodes are", ""},
	{"/v1/client/allocation/", "restart, signal, exec and resource usage of allocations are", "POST /v1/allocation/ID/stop replaces an allocation"},
	{"/v1/allocation/*/services", "services are", ""},
	{"/v1/allocation/*/checks", "health checks are", ""},
	{"/v1/evaluations", "counting evaluations is", "GET /v1/evaluations lists them"},
	{"/v1/node/*/evaluate", "evaluating all jobs of a node is", "POST /v1/job/ID/evaluate evaluates a job"},
	{"/v1/node/pool", "node pools are", "use datacenters, node classes or attributes"},
	{"/v1/volume", "volumes are", ""},
	{"/v1/plugin", "storage plugins are", ""},
	{"/v1/var", "variables are", ""},
	{"/v1/service", "services are", ""},
	{"/v1/acl/", "ACL policies, roles and login methods are", "tokens have roles: see /v1/tokens"},
	{"/v1/quota", "quotas are", "weights of namespaces and disruption budgets limit what a namespace takes from others"},
	{"/v1/recommendation", "recommendations are", ""},
	{"/v1/sentinel", "Sentinel policies are", ""},
	{"/v1/agent/monitor", "streaming the log of a server is", "read the log of the process"},
	{"/v1/agent/pprof", "profiles are not served here: they are", "the metrics listener serves /debug/pprof"},
	{"/v1/agent/host", "data about the host is", "cede operator debug collects it"},
	{"/v1/agent/servers", "the list of a node's servers is", "client.servers in the configuration of the node lists them"},
	{"/v1/agent/force-leave", "forcing a server to leave is", "DELETE /v1/operator/raft/peer removes a failed server"},
	{"/v1/agent/keyring", "this form of the gossip keyring is", "see /v1/operator/keyring"},
	{"/v1/agent/schedulers", "changing the workers of a running server is", "set the number of workers in the configuration"},
	{"/v1/operator/autopilot/configuration", "changing the configuration of autopilot is", ""},
	{"/v1/operator/keyring/key", "root encryption keys are", ""},
	{"/v1/operator/keyring/rotate", "root encryption keys are", ""},
	{"/v1/operator/license", "licenses are", ""},
	{"/v1/operator/utilization", "utilization reports are", ""},
	{"/v1/operator/upgrade-check", "checks before an upgrade are", "cede operator doctor examines a server"},
	{"/v1/system/reconcile/summaries", "reconciling summaries is", "summaries are counted when they are read"},
	{"/v1/metrics", "metrics are not served here: they are", "the metrics listener serves /metrics"},
}

// unsupportedOperation returns the unsupported operation at a path, or nil.
func unsupportedOperation(path string) *unsupported {
	for i := range unsupportedPaths {
		if u := &unsupportedPaths[i]; hasPathPrefix(path, u.path) {
			return u
		}
	}
	return nil
}

// hasPathPrefix reports whether a path begins with prefix, in which * stands for any
// segment.
func hasPathPrefix(path, prefix string) bool {
	for {
		fixed, rest, wildcard := strings.Cut(prefix, "*")
		after, ok := strings.CutPrefix(path, fixed)
		if !ok || !wildcard {
			return ok
		}
		at := strings.IndexByte(after, '/')
		if at <= 0 {
			return false
		}
		path, prefix = after[at:], rest
	}
}
