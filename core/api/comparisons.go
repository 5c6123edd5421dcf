package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/comparisons"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/policymgr"
	"github.com/cede-scheduler/cede/core/sim/generate"
	"github.com/cede-scheduler/cede/sdk/client"
)

const tagComparisons = "comparisons"

// retryComparison is the delay that a client is given while a comparison waits.
const retryComparison = 10 * time.Second

func comparisonRoutes() []route {
	// Comparisons cost processor time, run the code of policies, and hold the workloads of
	// their authors.
	roles := []acl.Role{acl.Policy, acl.Operate}
	return []route{
		{
			methods: get, pattern: "/v1/comparisons", name: "comparisons_list", tag: tagComparisons, roles: roles,
			doc:      "Lists the comparisons of the server that handles the request, newest first, with the presets and the limits.",
			response: client.Comparisons{}, handle: listComparisons,
		},
		{
			methods: post, pattern: "/v1/comparisons", name: "comparison_submit", tag: tagComparisons, roles: roles, isRead: true,
			doc: "Plays a scenario under several policies, in a process of the server that handles the request. One comparison is played at a time, " +
				"and one may wait; while it does, the status is 429. A policy is built in, P or P?key=value, the name of a loaded policy, or NAME@VERSION.",
			request: client.ComparisonRequest{}, response: client.Comparison{}, handle: submitComparison,
		},
		{
			methods: get, pattern: "/v1/comparison/{id}", name: "comparison_status", tag: tagComparisons, roles: roles,
			doc: "Returns a comparison of the server that handles the request.",
			params: []param{
				{"after", "integer", "returns as soon as Version is greater; absent: at once"},
				{"wait", "string", "maximum time to wait with after; default: 30s"},
			},
			response: client.Comparison{}, handle: comparisonStatus,
		},
		{
			methods: get, pattern: "/v1/comparison/{id}/report", name: "comparison_report", tag: tagComparisons, roles: roles, isBinary: true,
			doc:    "Returns the report of a comparison: the page of cede compare --html, or the document of cede compare -o json.",
			params: []param{{"format", "string", "html or json; default: json"}}, handle: comparisonReport,
		},
		{
			methods: remove, pattern: "/v1/comparison/{id}", name: "comparison_cancel", tag: tagComparisons, roles: roles, isRead: true,
			doc:      "Cancels a comparison, or removes one that has ended, on the server that handles the request.",
			response: client.Comparison{}, handle: cancelComparison,
		},
	}
}

// comparisonQueue returns the queue, or an error if this server has none.
func comparisonQueue(a *API) (*comparisons.Queue, error) {
	if a.cfg.Comparisons == nil {
		return nil, rest.Unavailable("this server plays no comparisons").WithHint("play it with cede compare")
	}
	return a.cfg.Comparisons, nil
}

func listComparisons(a *API, _ *call) (any, error) {
	q, err := comparisonQueue(a)
	if err != nil {
		return nil, err
	}
	l := q.Limits()
	out := &client.Comparisons{Comparisons: []*client.Comparison{}, Limits: client.ComparisonLimits{
		Input: l.Input, Policies: l.Policies, Seeds: l.Seeds, Nodes: l.Nodes, Instances: l.Instances, Memory: l.Memory, CPU: l.CPU, Time: l.Time,
	}}
	for _, c := range q.List() {
		out.Comparisons = append(out.Comparisons, comparisonView(&c))
	}
	for _, p := range generate.Presets() {
		out.Presets = append(out.Presets, client.ComparisonPreset{Name: p.Name, Description: p.Description})
	}
	return out, nil
}

// submitComparison reserves a place before it reads the body, so that concurrent requests
// cannot fill the memory.
func submitComparison(a *API, c *call) (any, error) {
	q, err := comparisonQueue(a)
	if err != nil {
		return nil, err
	}
	release, err := q.Reserve()
	if err != nil {
		f := &rest.Failure{Code: rest.CodeRateLimited, Message: "a comparison waits on this server already", RetryAfter: retryComparison}
		return nil, f.WithHint("repeat the request when one has ended, or cancel one")
	}
	defer release()
	const escapes = 2 // JSON quotes line ends with two bytes
	var req client.ComparisonRequest
	if err := c.decodeBodyUpTo(&req, escapes*int64(q.Limits().Input)+a.cfg.Limits.Body); err != nil {
		return nil, err
	}
	in, err := comparisonInput(c.r.Context(), a, &req, q.Limits())
	if err != nil {
		return nil, err
	}
	actor := ""
	if c.token != nil {
		actor = c.token.Accessor
	}
	submitted := q.Submit(in, actor)
	return comparisonView(&submitted), nil
}

// comparisonInput checks a request. It returns an error that lists all problems.
func comparisonInput(ctx context.Context, a *API, req *client.ComparisonRequest, l comparisons.Limits) (*comparisons.Input, error) {
	in := &comparisons.Input{Name: req.Name, Text: []byte(req.Text), Description: req.Description, Preset: req.Preset, Seeds: max(req.Seeds, 1)}
	var problems []string
	reject := func(condition bool, problem string) {
		if condition {
			problems = append(problems, problem)
		}
	}
	reject((req.Text == "") == (req.Preset == ""), "either Text or Preset is required")
	reject(len(req.Text) > l.Input, "Text must be at most "+strconv.Itoa(l.Input)+" bytes")
	reject(req.Preset != "" && !slices.ContainsFunc(generate.Presets(), func(p generate.Preset) bool { return p.Name == req.Preset }), "unknown Preset "+rest.Quote(req.Preset))
	reject(req.Seeds < 0 || req.Seeds > l.Seeds, "Seeds must be between 1 and "+strconv.Itoa(l.Seeds))
	reject(len(req.Policies) < 2 || len(req.Policies) > l.Policies, "Policies must name between 2 and "+strconv.Itoa(l.Policies)+" policies")
	reject(len(req.Name) > 200, "Name must be at most 200 bytes")
	if len(req.Policies) <= l.Policies {
		problems = append(problems, comparedPolicies(ctx, a, req.Policies, in, l.Modules)...)
	}
	if len(problems) > 0 {
		return nil, rest.Invalid("invalid comparison: %s", strings.Join(problems, "; ")).With("Problems", problems)
	}
	if in.Name == "" {
		in.Name = req.Preset
	}
	if in.Name == "" {
		in.Name = "scenario.yaml"
	}
	return in, nil
}

// comparedPolicies adds the policies to the input. It returns their problems.
func comparedPolicies(ctx context.Context, a *API, names []string, in *comparisons.Input, most int) (problems []string) {
	bytes := 0
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			problems = append(problems, "duplicate policy "+rest.Quote(name))
			continue
		}
		p, problem := comparedPolicy(ctx, a, name)
		if problem != "" {
			problems = append(problems, problem)
			continue
		}
		bytes += len(p.Module)
		in.Policies = append(in.Policies, p)
	}
	if bytes > most {
		problems = append(problems, "the modules of the policies have more than "+strconv.Itoa(most)+" bytes")
	}
	return problems
}

// comparedPolicy returns a policy of the cluster, or a built-in one, or the problem of its
// name.
func comparedPolicy(ctx context.Context, a *API, name string) (comparisons.Policy, string) {
	p := comparisons.Policy{Name: name}
	base, _, _ := strings.Cut(name, "?")
	base, version, _ := strings.Cut(base, "@")
	status, err := a.cfg.Server.PolicyStatus(ctx, base)
	if err != nil {
		return p, "unknown policy " + rest.Quote(name)
	}
	if strings.Contains(name, "?") || version == "" && (status.State == nil || status.State.Active == "") && status.Builtin {
		if !status.Builtin {
			return p, "the settings of " + rest.Quote(name) + " are those of its version: name the version"
		}
		return p, ""
	}
	v, problem := comparedVersion(status, name, version)
	if v == nil {
		return p, problem
	}
	p.Version = v
	if !v.HasModule() {
		if v.Kind == model.PolicyProcess {
			return p, rest.Quote(name) + " is an executable, which comparisons do not start"
		}
		return p, ""
	}
	if _, p.Module, err = a.cfg.Server.PolicyModule(ctx, base, v.ID); err != nil {
		return p, err.Error()
	}
	return p, ""
}

// comparedVersion returns the version with a prefix, or the active one, or the problem.
func comparedVersion(status *policymgr.Status, name, prefix string) (*model.PolicyVersion, string) {
	if prefix == "" && status.State != nil {
		prefix = status.State.Active
	}
	var found *model.PolicyVersion
	for _, v := range status.Versions {
		if prefix != "" && !strings.HasPrefix(v.ID, prefix) && !strings.HasPrefix(model.ShortVersion(v.ID), prefix) {
			continue
		}
		if found != nil {
			return nil, rest.Quote(name) + " names several versions"
		}
		found = v
	}
	if found == nil {
		return nil, "unknown version " + rest.Quote(name)
	}
	return found, ""
}

func comparisonStatus(a *API, c *call) (any, error) {
	q, err := comparisonQueue(a)
	if err != nil {
		return nil, err
	}
	after, ctx := uint64(0), c.r.Context()
	if text := c.r.URL.Query().Get("after"); text != "" {
		if after, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, rest.Invalid("invalid after=%s: it must be a number", rest.Quote(text)).With("Parameter", "after")
		}
		wait := 30 * time.Second
		if c.r.URL.Query().Has("wait") {
			if wait, err = queryWait(c); err != nil {
				return nil, err
			}
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	got, err := q.Get(ctx, c.r.PathValue("id"), after)
	if err != nil {
		return nil, comparisonError(c, err)
	}
	return comparisonView(&got), nil
}

func comparisonReport(a *API, c *call) (any, error) {
	q, err := comparisonQueue(a)
	if err != nil {
		return nil, err
	}
	r, err := q.Report(c.r.PathValue("id"))
	if err != nil {
		return nil, comparisonError(c, err)
	}
	h := c.w.Header()
	// The page holds names from the scenario. A browser that opens it runs no code of it.
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'")
	h.Set("X-Content-Type-Options", "nosniff")
	body := []byte(r.Document)
	switch format := c.r.URL.Query().Get("format"); format {
	case "", "json":
		h.Set("Content-Type", "application/json")
	case "html":
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Disposition", `attachment; filename="comparison.html"`)
		body = r.HTML
	default:
		return nil, rest.Invalid("invalid format=%s: it must be html or json", rest.Quote(format)).With("Parameter", "format")
	}
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(body) // an error means that the client disconnected
	return responded, nil
}

func cancelComparison(a *API, c *call) (any, error) {
	q, err := comparisonQueue(a)
	if err != nil {
		return nil, err
	}
	id := c.r.PathValue("id")
	before, err := q.Get(c.r.Context(), id, 0)
	if err == nil {
		err = q.Cancel(id)
	}
	if err != nil {
		return nil, comparisonError(c, err)
	}
	return comparisonView(&before), nil
}

func comparisonError(c *call, err error) error {
	id := rest.Quote(c.r.PathValue("id"))
	switch {
	case errors.Is(err, comparisons.ErrNotFound):
		return rest.NotFound("comparison %s not found", id).WithHint("comparisons belong to the server that received them, and the oldest are removed")
	case errors.Is(err, comparisons.ErrNoReport):
		return (&rest.Failure{Code: client.CodeConflict, Message: "comparison " + id + " has no report"}).WithHint("a report exists when Status is complete")
	}
	return err
}

func comparisonView(c *comparisons.Comparison) *client.Comparison {
	out := &client.Comparison{
		ID: c.ID, Name: c.Name, Policies: c.Policies, Seeds: c.Seeds, Actor: c.Actor, Status: string(c.Status), Share: c.Share, Progress: c.Text,
		Created: c.Created, Started: c.Started, Ended: c.Ended, Warnings: c.Warnings, Version: c.Version,
	}
	if c.Error != nil {
		out.Error = &client.ComparisonError{Message: c.Error.Message, Hint: c.Error.Hint, Problems: c.Error.Lines}
	}
	return out
}
