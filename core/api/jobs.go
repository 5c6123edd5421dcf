package api

import (
	"cmp"
	"errors"
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

const tagJobs = "jobs"

func jobRoutes() []route {
	reader, submitter := []acl.Role{acl.Read}, []acl.Role{acl.Submit}
	return []route{
		{
			methods: get, pattern: "/v1/jobs", name: "jobs_list", tag: tagJobs, roles: reader, scope: scopeNamespace,
			doc:     "Lists jobs, ordered by namespace and ID.",
			isQuery: true, isPaged: true, response: []*client.JobStub{}, handle: listJobs,
		},
		{
			methods: post, pattern: "/v1/jobs", name: "jobs_register", tag: tagJobs, roles: submitter, scope: scopeNamespace, leaderOnly: true,
			doc:     "Registers or updates a job. With PlanToken, it applies the placements that a plan proposed.",
			request: client.JobRegisterRequest{}, response: client.JobRegisterResponse{}, handle: registerJob,
		},
		{
			methods: post, pattern: "/v1/job/{id}", name: "job_update", tag: tagJobs, roles: submitter, scope: scopeNamespace, leaderOnly: true,
			doc:     "Registers or updates the job in the path.",
			request: client.JobRegisterRequest{}, response: client.JobRegisterResponse{}, handle: registerJob,
		},
		{
			methods: post, pattern: "/v1/jobs/parse", name: "jobs_parse", tag: tagJobs, roles: submitter, scope: scopePublic, isRead: true,
			doc:     "Converts the text of a job file (HCL, YAML or JSON) to a job.",
			request: client.JobsParseRequest{}, response: client.Job{}, handle: parseJob,
		},
		{
			methods: post, pattern: "/v1/validate/job", name: "job_validate", tag: tagJobs, roles: submitter, scope: scopeNamespace, isRead: true,
			doc:     "Validates a job and lists every problem.",
			request: client.JobValidateRequest{}, response: client.JobValidateResponse{}, handle: validateJob,
		},
		{
			methods: post, pattern: "/v1/job/{id}/plan", name: "job_plan", tag: tagJobs, roles: submitter, scope: scopeNamespace, leaderOnly: true, isRead: true,
			doc:     "Returns the changes that registering a job would make, including evictions, and a token that applies them.",
			request: client.JobPlanRequest{}, response: client.JobPlanResponse{}, handle: planJob,
		},
		{
			methods: get, pattern: "/v1/job/{id}", name: "job_get", tag: tagJobs, roles: reader, scope: scopeNamespace,
			doc: "Returns a job.", isQuery: true, response: client.Job{}, handle: getJob,
		},
		{
			methods: remove, pattern: "/v1/job/{id}", name: "job_stop", tag: tagJobs, roles: submitter, scope: scopeNamespace, leaderOnly: true,
			doc:      "Stops a job.",
			params:   []param{{"purge", "boolean", "delete the job once none of its allocations run"}},
			response: client.JobStopResponse{}, handle: stopJob,
		},
		{
			methods: post, pattern: "/v1/job/{id}/evaluate", name: "job_evaluate", tag: tagJobs, roles: submitter, scope: scopeNamespace, leaderOnly: true,
			doc: "Creates a new evaluation of a job.", response: client.JobStopResponse{}, handle: evaluateJob,
		},
		{
			methods: get, pattern: "/v1/job/{id}/summary", name: "job_summary", tag: tagJobs, roles: reader, scope: scopeNamespace,
			doc: "Counts the allocations of a job by task group.", isQuery: true, response: client.JobSummary{}, handle: jobSummary,
		},
		{
			methods: get, pattern: "/v1/job/{id}/versions", name: "job_versions", tag: tagJobs, roles: reader, scope: scopeNamespace,
			doc: "Lists the latest versions of a job, newest first.", isQuery: true,
			params: []param{
				{"diffs", "boolean", "with the differences of each version from the one before"},
				{"diff_version", "integer", "with diffs: the differences of each version from this one"},
			},
			response: client.JobVersionsResponse{}, handle: jobVersions,
		},
		{
			methods: get, pattern: "/v1/job/{id}/forecast", name: "job_forecast", tag: tagJobs, roles: reader, scope: scopeNamespace,
			doc: "Predicts when the waiting instances of a job start: the server plays its state forward with the policies in force, several times, " +
				"with durations drawn at random. Nothing else arrives in a play. Reason states why a forecast is impossible. The answer is up to 5 s old.",
			response: client.JobForecast{}, handle: jobForecast,
		},
		{
			methods: get, pattern: "/v1/job/{id}/allocations", name: "job_allocations", tag: tagJobs, roles: reader, scope: scopeNamespace,
			doc: "Lists the allocations of a job, ordered by ID.", isQuery: true,
			response: []*client.AllocationStub{}, handle: jobAllocations,
		},
		{
			methods: get, pattern: "/v1/job/{id}/evaluations", name: "job_evaluations", tag: tagJobs, roles: reader, scope: scopeNamespace,
			doc: "Lists the evaluations of a job, newest first.", isQuery: true,
			response: []*client.Evaluation{}, handle: jobEvaluations,
		},
	}
}

func listJobs(_ *API, c *call) (any, error) {
	part, err := c.page()
	if err != nil {
		return nil, err
	}
	return c.read(query{
		keys: []state.Key{state.TableJobs.All(), state.TableAllocs.All(), state.TableNodes.All()}, table: state.TableJobs, wholeTable: true,
		render: func(s *state.Snapshot) (any, uint64, error) {
			p := pager[*client.JobStub]{page: part}
			changed := uint64(0)
			for j := range jobsOf(s, c) {
				changed = max(changed, j.ModifyIndex)
				if !p.add(pageKey(j.Namespace, j.ID), func() *client.JobStub {
					stub, index := view.JobStub(s, j)
					changed = max(changed, index)
					return stub
				}) {
					break
				}
			}
			return p.result(c), changed, nil
		},
	})
}

// jobsOf yields the jobs that match the request, in ascending order.
func jobsOf(s *state.Snapshot, c *call) func(func(*model.Job) bool) {
	ns := c.namespace()
	jobs := s.Jobs()
	if ns != allNamespaces {
		jobs = s.JobsPrefix(ns, queryPrefix(c))
	}
	return func(yield func(*model.Job) bool) {
		for j := range jobs {
			if c.matches(j.Namespace, j.ID) && !yield(j) {
				return
			}
		}
	}
}

// jobFrom converts the job of a request to the model. It returns an error that lists
// every problem of the job.
func jobFrom(c *call, job *client.Job) (*model.Job, error) {
	if job == nil {
		return nil, rest.Invalid("Job is required").WithHint(`the body must be {"Job": {"ID": ..., "TaskGroups": [...]}}`)
	}
	id := c.r.PathValue("id")
	switch {
	case id != "" && job.ID == "":
		job.ID = id
	case id != "" && job.ID != id:
		return nil, rest.Invalid("the path names job %s, but the body names %s", rest.Quote(id), rest.Quote(job.ID)).WithHint("omit the ID in the body, or use that of the path")
	}
	ns := c.r.URL.Query().Get("namespace")
	switch {
	case ns == allNamespaces:
		return nil, rest.Invalid("invalid namespace=*: a job belongs to one namespace, so set namespace=NAME")
	case job.Namespace == "":
		job.Namespace = ns
	case ns != "" && job.Namespace != ns && c.token != nil && c.token.Namespace != "":
		return nil, forbidden(c, "access to namespace %s: it is restricted to %s", rest.Quote(job.Namespace), rest.Quote(c.token.Namespace))
	}
	m, err := jobspec.ToModel(job)
	if err != nil {
		return nil, jobProblems(err)
	}
	if !c.canSee(m.Namespace) {
		return nil, forbidden(c, "access to namespace %s: it is restricted to %s", rest.Quote(m.Namespace), rest.Quote(c.token.Namespace))
	}
	return m, nil
}

// jobProblems returns an error that lists every problem of a job.
func jobProblems(err error) error {
	var problems jobspec.Problems
	if !errors.As(err, &problems) {
		return rest.Invalid("%v", err)
	}
	f := rest.Invalid("invalid job: %d problems:\n%v", len(problems), err)
	if len(problems) == 1 {
		f.Message = problems[0].String()
	}
	list := make([]any, len(problems))
	for i := range problems {
		list[i] = problems[i]
	}
	return f.With("Problems", list)
}

// registerRequest distinguishes an empty token from an absent one. An empty token is
// an error of the client, and must not register the job without its plan.
type registerRequest struct {
	client.JobRegisterRequest
	PlanToken  *string
	Submission any // the source of the job file, which Nomad's CLI sends and cede does not store
}

func registerJob(a *API, c *call) (any, error) {
	var req registerRequest
	warnings, err := c.decodeJobBody(&req)
	if err != nil {
		return nil, err
	}
	if req.PlanToken != nil && *req.PlanToken == "" {
		return nil, rest.Invalid("PlanToken must not be empty").With("Field", "PlanToken").
			WithHint("omit the field to register the job without a plan; a plan without changes has no token")
	}
	job, err := jobFrom(c, req.Job)
	if err != nil {
		return nil, err
	}
	o := endpoint.RegisterOptions{ExplicitPriority: req.Job.Priority != nil}
	if req.PlanToken != nil {
		o.Token = *req.PlanToken
	}
	if o.Key, err = idempotencyKey(c); err != nil {
		return nil, err
	}
	if req.EnforceIndex {
		o.Check = &req.JobModifyIndex
	}
	r, err := a.cfg.Server.RegisterJob(c.writeContext(), job, o)
	if err != nil {
		return nil, err
	}
	return registerResponse(c, r, append(warnings, jobspec.Warnings(req.Job, job)...)), nil
}

func registerResponse(c *call, r *endpoint.Registered, warnings []string) *client.JobRegisterResponse {
	c.setIndexHeaders(r.Index)
	out := &client.JobRegisterResponse{
		EvalID: r.EvalID, Index: r.Index, JobModifyIndex: r.JobModifyIndex, Replayed: r.Replayed,
		WarningList: slices.Concat(warnings, r.Warnings),
	}
	if r.EvalID != "" {
		out.EvalCreateIndex = r.Index
	}
	out.Warnings = strings.Join(out.WarningList, "\n")
	return out
}

// maxIdempotencyKey is the maximum length of an idempotency key in bytes.
const maxIdempotencyKey = 128

// idempotencyKey returns the idempotency key of the request, separate for each token,
// or "" if there is none.
func idempotencyKey(c *call) (string, error) {
	key := c.r.Header.Get(headerIdempotency)
	if len(key) > maxIdempotencyKey || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", rest.Invalid("invalid %s: it must have at most %d printable characters", headerIdempotency, maxIdempotencyKey)
	}
	if key != "" && c.token != nil {
		key = c.token.Accessor + "/" + key
	}
	return key, nil
}

func parseJob(_ *API, c *call) (any, error) {
	var req client.JobsParseRequest
	text, err := c.readBody(c.api.cfg.Limits.Job)
	if err != nil {
		return nil, err
	}
	if _, err := rest.Decode(text, &req, c.api.cfg.Limits.Depth); err != nil {
		return nil, err
	}
	req.Name = cmp.Or(req.Name, "job.hcl")
	job, err := jobspec.Parse(req.Name, []byte(req.JobHCL))
	if err != nil {
		return nil, jobProblems(err)
	}
	if req.Canonicalize {
		m, err := jobspec.ToModel(job)
		if err != nil {
			return nil, jobProblems(err)
		}
		priority := job.Priority // without one, that of the job's class or of the default class
		job = jobspec.FromModel(m)
		job.Priority = priority
	}
	return job, nil
}

func validateJob(_ *API, c *call) (any, error) {
	var req client.JobValidateRequest
	warnings, err := c.decodeJobBody(&req)
	if err != nil {
		return nil, err
	}
	out := &client.JobValidateResponse{DriverConfigValidated: true, ValidationErrors: []string{}}
	if job, err := jobFrom(c, req.Job); err == nil {
		warnings = append(warnings, jobspec.Warnings(req.Job, job)...)
	} else {
		var problems jobspec.Problems
		if f := rest.FailureOf(err); f.Code != rest.CodeInvalid || req.Job == nil {
			return nil, err
		}
		out.Error = err.Error()
		if _, err := jobspec.ToModel(req.Job); errors.As(err, &problems) {
			for i := range problems {
				out.ValidationErrors = append(out.ValidationErrors, problems[i].String())
			}
		} else {
			out.ValidationErrors = append(out.ValidationErrors, out.Error)
		}
	}
	out.Warnings = strings.Join(warnings, "\n")
	return out, nil
}

func planJob(a *API, c *call) (any, error) {
	var req client.JobPlanRequest
	warnings, err := c.decodeJobBody(&req)
	if err != nil {
		return nil, err
	}
	job, err := jobFrom(c, req.Job)
	if err != nil {
		return nil, err
	}
	p, err := a.cfg.Server.PlanJob(c.writeContext(), job, endpoint.PlanOptions{ExplicitPriority: req.Job.Priority != nil})
	if err != nil {
		return nil, err
	}
	c.setIndexHeaders(p.Index)
	return view.Plan(a.cfg.Server.Snapshot(), p, append(warnings, jobspec.Warnings(req.Job, job)...), req.Diff), nil
}

func stopJob(a *API, c *call) (any, error) {
	key, err := c.jobKey()
	if err != nil {
		return nil, err
	}
	var o endpoint.StopOptions
	if o.Purge, err = queryFlag(c, "purge"); err != nil {
		return nil, err
	}
	if o.Key, err = idempotencyKey(c); err != nil {
		return nil, err
	}
	r, err := a.cfg.Server.StopJob(c.writeContext(), key, o)
	if err != nil {
		return nil, err
	}
	return registerResponse(c, r, nil), nil
}

func evaluateJob(a *API, c *call) (any, error) {
	key, err := c.jobKey()
	if err != nil {
		return nil, err
	}
	r, err := a.cfg.Server.Evaluate(c.writeContext(), key)
	if err != nil {
		return nil, err
	}
	return registerResponse(c, r, nil), nil
}

// readJob runs a query for one job and the objects that belong to it.
func readJob(c *call, render func(*state.Snapshot, *model.Job) (any, uint64)) (any, error) {
	key, err := c.jobKey()
	if err != nil {
		return nil, err
	}
	return c.read(query{
		keys: append(view.JobNodeKeys(c.api.cfg.Server.Snapshot(), key), state.TableJobs.OfJob(key), state.TableJobAllocs.OfJob(key), state.TableJobEvals.OfJob(key)),
		render: func(s *state.Snapshot) (any, uint64, error) {
			j := s.Job(key)
			if j == nil {
				return nil, 0, jobNotFound(s, key)
			}
			result, changed := render(s, j)
			return result, max(changed, j.ModifyIndex), nil
		},
	})
}

// jobNotFound returns the error for a missing job. The hint lists the namespaces that
// have a job with the same ID.
func jobNotFound(s *state.Snapshot, key model.JobKey) error {
	f := rest.NotFound("job %s not found in namespace %s", rest.Quote(key.ID), rest.Quote(key.Namespace))
	var similar []string
	for j := range s.JobsPrefix(key.Namespace, key.ID) {
		if similar = append(similar, j.ID); len(similar) == 5 {
			break
		}
	}
	if len(similar) > 0 {
		return f.WithHint("jobs with this prefix: %s", strings.Join(similar, ", "))
	}
	return f.WithHint("GET /v1/jobs lists them")
}

func getJob(_ *API, c *call) (any, error) {
	return readJob(c, func(s *state.Snapshot, j *model.Job) (any, uint64) {
		_, changed := view.JobSummary(s, j)
		return view.Job(s, j), changed
	})
}

func jobSummary(_ *API, c *call) (any, error) {
	return readJob(c, func(s *state.Snapshot, j *model.Job) (any, uint64) {
		summary, changed := view.JobSummary(s, j)
		return summary, changed
	})
}

func jobVersions(_ *API, c *call) (any, error) {
	withDiffs, err := queryFlag(c, "diffs")
	if err != nil {
		return nil, err
	}
	base, err := queryNumber(c, "diff_version")
	if err != nil {
		return nil, err
	}
	if c.r.URL.Query().Has("diff_tag") {
		return nil, rest.Unsupported("versions of jobs have no tags").WithHint("use diff_version")
	}
	return readJob(c, func(s *state.Snapshot, j *model.Job) (any, uint64) {
		out := &client.JobVersionsResponse{Versions: []*client.Job{}}
		for _, version := range s.JobVersions(j.Key()) {
			out.Versions = append(out.Versions, view.Job(s, version))
		}
		if withDiffs {
			out.Diffs = versionDiffs(out.Versions, base, c.r.URL.Query().Has("diff_version"))
		}
		return out, 0
	})
}

// versionDiffs returns the differences of each version from the one before or, if
// fixed is set, from the version base. The versions are ordered newest first. In the
// first case, the oldest version has none.
func versionDiffs(versions []*client.Job, base uint64, fixed bool) (list []*client.JobDiff) {
	for i, version := range versions {
		var before *client.Job
		switch {
		case fixed:
			if at := slices.IndexFunc(versions, func(j *client.Job) bool { return j.Version == base }); at >= 0 {
				before = versions[at]
			}
		case i+1 < len(versions):
			before = versions[i+1]
		}
		if before != nil {
			list = append(list, view.JobDiff(before, version))
		}
	}
	return list
}

// A purged job may have left allocations and evaluations behind, so their lists do
// not require the job to exist.

func jobAllocations(_ *API, c *call) (any, error) {
	key, err := c.jobKey()
	if err != nil {
		return nil, err
	}
	return c.read(query{
		keys: append(view.JobNodeKeys(c.api.cfg.Server.Snapshot(), key), state.TableJobAllocs.OfJob(key)),
		render: func(s *state.Snapshot) (any, uint64, error) {
			list, changed := view.AllocStubs(s, s.AppendJobAllocs(nil, key))
			return list, changed, nil
		},
	})
}

func jobEvaluations(_ *API, c *call) (any, error) {
	key, err := c.jobKey()
	if err != nil {
		return nil, err
	}
	return c.read(query{
		keys: []state.Key{state.TableJobEvals.OfJob(key)},
		render: func(s *state.Snapshot) (any, uint64, error) {
			list, changed := []*client.Evaluation{}, uint64(0)
			for _, e := range s.EvalsOfJob(key) {
				changed = max(changed, e.ModifyIndex)
				list = append(list, view.Eval(e))
			}
			slices.SortStableFunc(list, func(a, b *client.Evaluation) int { return view.CompareDescending(a.CreateIndex, b.CreateIndex) })
			return list, changed, nil
		},
	})
}

func jobForecast(a *API, c *call) (any, error) {
	key, err := c.jobKey()
	if err != nil {
		return nil, err
	}
	snap := a.cfg.Server.Snapshot()
	job := snap.Job(key)
	if job == nil {
		return nil, rest.NotFound("job %s not found", rest.Quote(key.ID)).WithHint("GET /v1/jobs lists them")
	}
	c.setStateHeaders(snap)
	out := &client.JobForecast{Namespace: job.Namespace, JobID: job.ID, Index: snap.Index(), Time: a.cfg.Clock.Now().UnixNano()}
	switch {
	case job.Stopped:
		out.Reason = "the job is stopped"
	case snap.Config().BrokerPaused:
		out.Reason = "the evaluation broker is paused: nothing is scheduled"
	}
	if out.Reason != "" {
		return out, nil
	}
	q, err := a.cfg.Server.ForecastQueue(c.r.Context(), a.cfg.Server.Snapshot)
	if err != nil {
		return nil, err
	}
	return view.JobForecast(key, q), nil
}
