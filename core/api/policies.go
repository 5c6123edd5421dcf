package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime/multipart"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/api/view"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/policymgr"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/trial"
	"github.com/cede-scheduler/cede/sdk/client"
)

const tagPolicies = "policies"

func policyRoutes() []route {
	reader, author := []acl.Role{acl.Read, acl.Policy}, []acl.Role{acl.Policy}
	controller := append(slices.Clone(reader), acl.Kubernetes) // follows the active version
	routes := []route{
		{
			methods: get, pattern: "/v1/policies", name: "policies_list", tag: tagPolicies, roles: reader,
			doc: "Lists policies, including built-in ones, ordered by name.", response: []*client.PolicyStub{}, handle: listPolicies,
		},
		{
			methods: post, pattern: "/v1/policies", name: "policy_load", tag: tagPolicies, roles: author, leaderOnly: true, isBinary: true,
			accepts: []string{"application/json", "multipart/form-data"},
			doc: "Loads a version of a policy on every server. The body is multipart/form-data with the parts request (JSON) and, " +
				"if a module is sent, module (WebAssembly, at most 8 MiB), manifest and signature. Without a module, the body may be JSON.",
			params:  []param{{"wait", "string", "maximum time to wait for the checks of all servers; Awaited then lists the missing ones"}},
			request: client.PolicyLoad{}, response: client.PolicyVersion{}, handle: loadPolicy,
		},
		{
			methods: get, pattern: "/v1/policy/{name}", name: "policy_status", tag: tagPolicies, roles: controller, isQuery: true,
			doc: "Returns a policy with its versions, its state in the cluster, and its statistics on the server that handles the request. Statistics do not end a blocking query.", response: client.PolicyStatus{}, handle: policyStatus,
		},
		{
			methods: get, pattern: "/v1/policy/{name}/versions", name: "policy_versions", tag: tagPolicies, roles: reader,
			doc: "Lists the loaded versions of a policy, newest first.", response: []*client.PolicyVersion{}, handle: policyVersions,
		},
		{
			methods: get, pattern: "/v1/policy/{name}/differences", name: "policy_differences", tag: tagPolicies, roles: reader,
			doc: "Lists the decisions in which the shadow version of a policy differed, on the server that handles the request, newest first.", response: []*client.PolicyDifference{}, handle: policyDifferences,
		},
	}
	routes = append(routes, route{
		methods: putMethods, pattern: "/v1/policy/{name}/trial", name: "policy_trial", tag: tagPolicies, roles: author, leaderOnly: true,
		doc: "Compares a version with the active one: both decide in alternate blocks of time, in random order. The trial ends when StopIf or PromoteIf " +
			"holds, or after For. The conditions hold at every number of blocks with a common error rate of 5 %.",
		request: client.PolicyTrialRequest{}, response: client.PolicyStatus{}, handle: withBody(startTrial),
	})
	routes = append(routes, route{
		methods: get, pattern: "/v1/policy/{name}/trial", name: "policy_trial_course", tag: tagPolicies, roles: reader,
		doc:      "Returns the trial with blocks of a policy, in progress or the last one, with the blocks and the confidence sequence of one metric.",
		params:   []param{{"metric", "string", "victims, wastedWork.cpu, wastedWork.memory, budgetViolations, queueDelay.mean or placed; default: victims"}},
		response: client.PolicyTrialCourse{}, handle: trialCourse,
	})
	for _, verb := range slices.Sorted(maps.Keys(policyVerbs)) {
		v := policyVerbs[verb]
		routes = append(routes, route{
			methods: putMethods, pattern: "/v1/policy/{name}/" + verb, name: "policy_" + verb, tag: tagPolicies, roles: author, leaderOnly: true,
			doc: v.doc, request: client.PolicyVersionRequest{}, response: client.PolicyStatus{},
			handle: func(a *API, c *call) (any, error) { return changePolicy(a, c, v.change) },
		})
	}
	return append(routes, route{
		methods: get, pattern: "/v1/decisions", name: "decisions_list", tag: tagPolicies, roles: reader,
		doc:    "Lists the decisions of policies on the server that handles the request, newest first.",
		params: []param{{"policy", "string", "only decisions of this policy"}}, response: []*client.PolicyDecision{}, handle: listDecisions,
	})
}

// policyVerb is one operation on the role of a version.
type policyVerb struct {
	doc    string
	change func(ctx context.Context, s Policies, name string, req *client.PolicyVersionRequest) (uint64, error)
}

var policyVerbs = map[string]policyVerb{
	"shadow": {
		"Runs a version in shadow: it receives live decisions, but its results are not applied. Without Version, the shadow run ends.",
		func(ctx context.Context, s Policies, name string, req *client.PolicyVersionRequest) (uint64, error) {
			return s.ShadowPolicy(ctx, name, req.Version)
		},
	},
	"activate": {
		"Activates a version once every server has checked it. With For, it is rolled back after that time.",
		func(ctx context.Context, s Policies, name string, req *client.PolicyVersionRequest) (uint64, error) {
			if req.For != 0 {
				return s.TryPolicy(ctx, name, req.Version, req.For)
			}
			return s.ActivatePolicy(ctx, name, req.Version)
		},
	},
	"rollback": {
		"Activates the previous version.",
		func(ctx context.Context, s Policies, name string, req *client.PolicyVersionRequest) (uint64, error) {
			if req.Version != "" {
				return 0, rest.Invalid("Version is not allowed in a rollback: it always activates the previous version").WithHint("use activate for a specific version")
			}
			return s.RollbackPolicy(ctx, name)
		},
	},
	"unload": {
		"Unloads a version that is neither active, previous nor shadow.",
		func(ctx context.Context, s Policies, name string, req *client.PolicyVersionRequest) (uint64, error) {
			return s.UnloadPolicy(ctx, name, req.Version)
		},
	},
	"reset": {
		"Clears the trip of a version that was deactivated because of its faults, so that it can be activated again. Without Version, it clears every version of the policy.",
		func(ctx context.Context, s Policies, name string, req *client.PolicyVersionRequest) (uint64, error) {
			return s.ResetPolicy(ctx, name, req.Version)
		},
	},
}

func changePolicy(a *API, c *call, change func(context.Context, Policies, string, *client.PolicyVersionRequest) (uint64, error)) (any, error) {
	var req client.PolicyVersionRequest
	if c.r.ContentLength != 0 {
		if err := c.decodeBody(&req); err != nil {
			return nil, err
		}
	}
	name := c.r.PathValue("name")
	ctx := c.writeContext()
	index, err := change(ctx, a.cfg.Server, name, &req)
	if err != nil {
		return nil, err
	}
	return changedPolicy(ctx, a, c, name, index)
}

func startTrial(a *API, c *call, req *client.PolicyTrialRequest) (any, error) {
	name, ctx := c.r.PathValue("name"), c.writeContext()
	index, err := a.cfg.Server.StartTrial(ctx, name, req.Version, policymgr.TrialRequest{
		For: req.For, Block: req.Block, Washout: req.Washout, Seed: req.Seed, StopIf: req.StopIf, PromoteIf: req.PromoteIf,
	})
	if err != nil {
		return nil, err
	}
	return changedPolicy(ctx, a, c, name, index)
}

func trialCourse(a *API, c *call) (any, error) {
	c.setStateHeaders(a.cfg.Server.Snapshot())
	metric := cmp.Or(c.r.URL.Query().Get("metric"), trial.Names()[0])
	s, course, err := a.cfg.Server.TrialCourse(c.r.Context(), c.r.PathValue("name"), metric)
	if err != nil {
		return nil, err
	}
	out := &client.PolicyTrialCourse{Policy: s.Name, Trial: *comparisonOf(s), Metric: metric, Points: []client.PolicyTrialPoint{}, Blocks: []client.PolicyTrialBlock{}}
	for i, value := range course.Blocks {
		b := &s.Trial.Blocks[i]
		out.Blocks = append(out.Blocks, client.PolicyTrialBlock{Start: b.Start, Candidate: b.Candidate, Value: value})
	}
	for _, p := range course.Points {
		point := client.PolicyTrialPoint{Time: p.End, Pairs: p.Pairs, Difference: p.Mean}
		point.Low, point.High = bounded(p.Interval)
		out.Points = append(out.Points, point)
	}
	return out, nil
}

// bounded returns the ends of an interval, or nil if the pairs are too few.
func bounded(i trial.Interval) (low, high *float64) {
	if math.IsInf(i.Low, 0) || math.IsInf(i.High, 0) {
		return nil, nil
	}
	return &i.Low, &i.High
}

// changedPolicy returns a policy after a change at an index.
func changedPolicy(ctx context.Context, a *API, c *call, name string, index uint64) (any, error) {
	c.setIndexHeaders(index)
	status, err := a.cfg.Server.PolicyStatus(ctx, name)
	if code := apierror.CodeOf(err); err != nil && code == apierror.CodeNotFound {
		return &client.PolicyStatus{PolicyStub: client.PolicyStub{Name: name}}, nil // its last version was unloaded
	}
	if err != nil {
		return nil, err
	}
	return policyOf(status), nil
}

func listPolicies(a *API, c *call) (any, error) {
	c.setStateHeaders(a.cfg.Server.Snapshot())
	list := []*client.PolicyStub{}
	for _, s := range a.cfg.Server.PolicyStatuses(c.r.Context()) {
		list = append(list, &policyOf(s).PolicyStub)
	}
	return list, nil
}

// requestedPolicy returns the policy that the path names, with its status on this server.
func requestedPolicy(c *call) (*client.PolicyStatus, error) {
	c.setStateHeaders(c.api.cfg.Server.Snapshot())
	s, err := c.api.cfg.Server.PolicyStatus(c.r.Context(), c.r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return policyOf(s), nil
}

func policyStatus(a *API, c *call) (any, error) {
	return c.read(query{
		// A version that is loaded has a key of its own, which is not known before.
		keys: []state.Key{state.TablePolicies.All()}, table: state.TablePolicies, wholeTable: true,
		render: func(*state.Snapshot) (any, uint64, error) {
			s, err := a.cfg.Server.PolicyStatus(c.r.Context(), c.r.PathValue("name"))
			if err != nil {
				return nil, 0, err
			}
			status := policyOf(s)
			return status, status.ModifyIndex, nil
		},
	})
}

func policyVersions(_ *API, c *call) (any, error) {
	status, err := requestedPolicy(c)
	if err != nil {
		return nil, err
	}
	if status.Loaded == nil {
		status.Loaded = []*client.PolicyVersion{}
	}
	return status.Loaded, nil
}

func policyDifferences(_ *API, c *call) (any, error) {
	status, err := requestedPolicy(c)
	if err != nil {
		return nil, err
	}
	if status.ShadowRun == nil || status.ShadowRun.Differences == nil {
		return []*client.PolicyDifference{}, nil
	}
	return status.ShadowRun.Differences, nil
}

func listDecisions(a *API, c *call) (any, error) {
	only, list := c.r.URL.Query().Get("policy"), []*client.PolicyDecision{}
	c.setStateHeaders(a.cfg.Server.Snapshot())
	for _, s := range a.cfg.Server.PolicyStatuses(c.r.Context()) {
		if only == "" || only == s.Name {
			list = append(list, policyOf(s).Decisions...)
		}
	}
	slices.SortStableFunc(list, func(a, b *client.PolicyDecision) int { return cmp.Compare(b.Time, a.Time) })
	return list, nil
}

// loadPolicy reads a version from the request, and stops reading when a part exceeds
// its limit.
func loadPolicy(a *API, c *call) (any, error) {
	wait := time.Duration(0) // 0: no limit
	if c.r.URL.Query().Has("wait") {
		var err error
		if wait, err = queryWait(c); err != nil {
			return nil, err
		}
		wait = max(wait, time.Nanosecond)
	}
	body := c.limitedBody(client.MaxModule+a.cfg.Limits.Body, a.cfg.Limits.Upload)
	var req policy.LoadRequest
	var err error
	if strings.HasPrefix(c.r.Header.Get("Content-Type"), "multipart/form-data") {
		c.r.Body = io.NopCloser(body)
		req, err = loadParts(c)
	} else {
		req, err = loadJSON(c, body)
	}
	if err != nil {
		return nil, err
	}
	c.endBody()
	req.Wait = wait
	v, err := a.cfg.Server.LoadPolicy(c.writeWithin(a.cfg.Limits.Upload), req)
	if err != nil {
		return nil, err
	}
	c.setIndexHeaders(max(v.ModifyIndex, 1))
	return view.PolicyVersion(v, a.cfg.Server.AwaitedChecks(v)), nil
}

func loadJSON(c *call, body io.Reader) (policy.LoadRequest, error) {
	text, err := io.ReadAll(io.LimitReader(body, c.api.cfg.Limits.Body+1))
	switch {
	case err != nil:
		return policy.LoadRequest{}, bodyError(err)
	case int64(len(text)) > c.api.cfg.Limits.Body:
		return policy.LoadRequest{}, rest.BodyTooLarge(c.api.cfg.Limits.Body)
	}
	return loadRequest(c, text)
}

func loadRequest(c *call, text []byte) (req policy.LoadRequest, err error) {
	var in client.PolicyLoad
	unknown, err := rest.Decode(text, &in, c.api.cfg.Limits.Depth)
	if err != nil {
		return req, err
	}
	if len(unknown) > 0 {
		return req, rest.Invalid("the request has %s: %s", countFields(len(unknown)), strings.Join(unknown, ", ")).With("Unknown", unknown)
	}
	return policy.LoadRequest{
		Name: in.Name, Builtin: in.Builtin, Executable: in.Executable, Config: in.Config, Grants: in.Grants, OnFault: in.OnFault,
	}, nil
}

// loadParts reads the parts of a form.
func loadParts(c *call) (req policy.LoadRequest, err error) {
	form, err := c.r.MultipartReader()
	if err != nil {
		return req, rest.Invalid("the body is not a valid form: %v", err)
	}
	parts := map[string][]byte{}
	for {
		p, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return req, partError(err)
		}
		name := p.FormName()
		limit, known := partLimits[name]
		if _, twice := parts[name]; !known || twice {
			return req, rest.Invalid("unknown or duplicate form part %s: the parts are request, module, manifest and signature, each at most once", rest.Quote(name))
		}
		if parts[name], err = readPart(p, limit); err != nil {
			return req, err
		}
	}
	if parts["request"] == nil {
		parts["request"] = []byte("{}")
	}
	if req, err = loadRequest(c, parts["request"]); err != nil {
		return req, err
	}
	req.Module, req.Manifest, req.Signature = parts["module"], parts["manifest"], parts["signature"]
	return req, nil
}

// partLimits are the maximum sizes of the parts in bytes.
var partLimits = map[string]int64{"request": 1 << 20, "module": client.MaxModule, "manifest": 64 << 10, "signature": 4 << 10}

func readPart(p *multipart.Part, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(p, limit+1))
	if err != nil {
		return nil, partError(err)
	}
	if int64(len(text)) > limit {
		f := rest.BodyTooLarge(limit)
		f.Message = fmt.Sprintf("form part %s is too large: at most %d bytes are allowed", rest.Quote(p.FormName()), limit)
		return nil, f
	}
	return text, nil
}

func partError(err error) error {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return rest.BodyTooLarge(tooLarge.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return bodyError(err)
	}
	return rest.Invalid("the form is incomplete: %v", err)
}

// policyOf converts the status of a policy.
func policyOf(s *policymgr.Status) *client.PolicyStatus {
	out := &client.PolicyStatus{
		PolicyStub: client.PolicyStub{Name: s.Name, Builtin: s.Builtin, Versions: len(s.Versions)},
		Ready:      s.Ready, Refused: s.Refused, Lost: s.Lost,
	}
	if st := s.State; st != nil {
		out.Active, out.Previous, out.Shadow, out.Tripped, out.Until = st.Active, st.Previous, st.Shadow, st.Tripped, st.Until
		out.ModifyIndex = st.ModifyIndex
		out.LastTrial = trialEndOf(&st.LastTrial)
	}
	for _, v := range s.Versions {
		out.Loaded = append(out.Loaded, view.PolicyVersion(v, s.Awaited[v.ID]))
		out.ModifyIndex = max(out.ModifyIndex, v.ModifyIndex)
	}
	if h := s.Here; h != nil {
		out.Here = &client.PolicyHere{
			Version: h.Version, Digest: h.Digest, Kind: h.Kind, Calls: h.Calls, Faults: h.Faults, Fallbacks: h.Fallbacks, Open: h.Open, Isolation: h.Isolation,
		}
	}
	for _, d := range s.Decisions {
		out.Decisions = append(out.Decisions, decisionOf(d))
	}
	out.ShadowRun = shadowOf(s.Shadow)
	for _, v := range s.Versions {
		if v.ID == out.Shadow && v.Shadow.Compared > 0 {
			out.Sums = &client.PolicyShadowSums{Version: v.ID, Compared: v.Shadow.Compared, Active: sumsOf(&v.Shadow.Active), Shadow: sumsOf(&v.Shadow.Shadow)}
		}
	}
	if s.Trial != nil {
		out.Trial = comparisonOf(s)
		out.ModifyIndex = max(out.ModifyIndex, s.Trial.ModifyIndex)
	}
	return out
}

func sumsOf(s *model.PolicySums) client.PolicySums {
	return client.PolicySums{
		Placed: s.Placed, Victims: s.Victims, LostWork: time.Duration(s.LostWork), HighestPriority: int(s.HighestPriority), BudgetViolations: s.BudgetViolations,
	}
}

// trialEndOf converts the end of a trial; nil if there was none.
func trialEndOf(t *model.Trial) *client.PolicyTrial {
	if t.Ended == "" {
		return nil
	}
	return &client.PolicyTrial{Version: t.Version, Ended: string(t.Ended), Time: t.Time, Actor: t.Actor, Reason: t.Reason}
}

// comparisonOf converts the trial with blocks of a policy, which must have one.
func comparisonOf(status *policymgr.Status) *client.PolicyComparison {
	t, s := status.Trial, status.Summary
	out := &client.PolicyComparison{
		Baseline: t.Baseline, Candidate: t.Candidate, Start: t.Start, Until: t.Until, Block: time.Duration(t.Plan.Block), Washout: time.Duration(t.Plan.Washout),
		StopIf: t.Plan.StopIf, PromoteIf: t.Plan.PromoteIf, Actor: t.Actor, Blocks: len(t.Blocks), End: trialEndOf(&t.End), Measures: []client.PolicyMeasure{},
		LeastPairs: trial.LeastPairs(int(t.Plan.Measures)), MostPairs: int((t.Until - t.Start) / (2 * t.Plan.Block)),
	}
	var warnings []string
	if out.MostPairs < out.LeastPairs {
		warnings = append(warnings, fmt.Sprintf("no verdict is possible: the conditions require at least %d pairs of blocks, and For contains %d", out.LeastPairs, out.MostPairs))
	}
	if status.Idle != "" {
		warnings = append(warnings, status.Idle)
	}
	out.Warning = strings.Join(warnings, "; ")
	if t.Running() {
		out.BlockEnd = t.BlockEnd()
	}
	for _, m := range s.Measures {
		measure := client.PolicyMeasure{Name: m.Name, Baseline: m.Baseline, Candidate: m.Candidate, Difference: m.Difference.Mean}
		measure.Low, measure.High = bounded(m.Difference)
		out.Measures = append(out.Measures, measure)
	}
	return out
}

func decisionOf(d *policymgr.Decision) *client.PolicyDecision {
	out := &client.PolicyDecision{
		Time: d.Time, Index: d.Index, EvalID: d.EvalID, Namespace: d.Namespace, JobID: d.JobID,
		Policy: d.Policy, Version: d.Version, Digest: d.Digest, Victims: d.Victims, Fault: d.Fault,
	}
	for _, u := range d.Uses {
		out.Uses = append(out.Uses, client.PolicyUse(u))
	}
	return out
}

func shadowOf(s *policymgr.ShadowStatus) *client.PolicyShadowRun {
	if s == nil {
		return nil
	}
	out := &client.PolicyShadowRun{
		Version: s.Version, Since: s.Since, Decisions: s.Decisions, Agreed: s.Agreed, Differed: s.Differed, Failed: s.Failed, Skipped: s.Skipped,
	}
	for _, d := range s.Differences {
		out.Differences = append(out.Differences, &client.PolicyDifference{
			Time: d.Time, Index: d.Index, EvalID: d.EvalID, Namespace: d.Namespace, JobID: d.JobID, Policy: d.Policy,
			Active: client.PolicyChoice(d.Active), Shadow: client.PolicyChoice(d.Shadow),
		})
	}
	return out
}

// The headers that describe a module.
const (
	headerPolicyVersion = "X-Cede-Policy-Version"
	headerPolicyDigest  = "X-Cede-Policy-Digest"
)

// policyModuleRoutes returns the routes that send the code of policies. They require
// a role that may inspect the cluster or load policies, or that of a controller, which
// runs them; read access to decisions is not sufficient.
func policyModuleRoutes() []route {
	return []route{{
		methods: get, pattern: "/v1/policy/{name}/module", name: "policy_module", tag: tagPolicies, roles: []acl.Role{acl.Operate, acl.Policy, acl.Kubernetes}, isBinary: true,
		doc: "Returns the WebAssembly module of a version. The headers " + headerPolicyVersion + " and " + headerPolicyDigest +
			" contain the version and the digest of the module.",
		params: []param{{"version", "string", "ID of the version, or a unique prefix; absent: the active version, or the only one"}},
		handle: policyModule,
	}}
}

// policyModule sends the bytes of a module.
func policyModule(a *API, c *call) (any, error) {
	c.setStateHeaders(a.cfg.Server.Snapshot())
	v, module, err := a.cfg.Server.PolicyModule(c.r.Context(), c.r.PathValue("name"), c.r.URL.Query().Get("version"))
	if err != nil {
		return nil, err
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/wasm")
	h.Set("Content-Length", strconv.Itoa(len(module)))
	h.Set(headerPolicyVersion, v.ID)
	h.Set(headerPolicyDigest, v.Digest)
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(module) // an error means that the client disconnected
	return responded, nil
}
