package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/api/view"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/rebalance"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

const tagScheduler = "scheduler"

func schedulerRoutes() []route {
	reader, operator := []acl.Role{acl.Read}, []acl.Role{acl.Operate}
	var routes []route
	for _, at := range []struct{ pattern, name, doc string }{
		{"/v1/scheduler/configuration", "scheduler", ""},
		{"/v1/operator/scheduler/configuration", "operator_scheduler", " This is the path that Nomad's clients use."},
	} {
		routes = append(routes, route{
			methods: get, pattern: at.pattern, name: at.name + "_get", tag: tagScheduler, roles: reader, scope: scopePublic,
			doc:     "Returns the cluster-wide scheduler configuration." + at.doc,
			isQuery: true, response: client.SchedulerConfigurationResponse{}, handle: getConfig,
		}, route{
			methods: putMethods, pattern: at.pattern, name: at.name + "_set", tag: tagScheduler, roles: operator, leaderOnly: true,
			doc:     "Updates the scheduler configuration. Absent fields and feature gates keep their values; null restores the default." + at.doc,
			params:  []param{{"cas", "integer", "write only if ModifyIndex has this value"}},
			request: client.SchedulerConfiguration{}, response: client.SchedulerSetConfigurationResponse{}, handle: setConfig,
		})
	}
	return append(append(routes, rebalanceRoutes(operator)...),
		route{
			methods: get, pattern: "/v1/priority-classes", name: "priority_classes_list", tag: tagScheduler, roles: reader, scope: scopePublic,
			doc: "Lists priority classes, ordered by name.", isQuery: true, response: []*client.PriorityClass{}, handle: listClasses,
		},
		route{
			methods: get, pattern: "/v1/priority-class/{name}", name: "priority_class_get", tag: tagScheduler, roles: reader, scope: scopePublic,
			doc: "Returns a priority class.", isQuery: true, response: client.PriorityClass{}, handle: getClass,
		},
		route{
			methods: putMethods, pattern: "/v1/priority-class/{name}", name: "priority_class_put", tag: tagScheduler, roles: operator, leaderOnly: true,
			doc:     "Creates or updates a priority class. Registered jobs keep their priority.",
			request: client.PriorityClass{}, response: client.IndexResponse{}, handle: withBody(putClass),
		},
		route{
			methods: remove, pattern: "/v1/priority-class/{name}", name: "priority_class_delete", tag: tagScheduler, roles: operator, leaderOnly: true,
			doc: "Deletes a priority class.", response: client.IndexResponse{}, handle: deleteClass,
		},
	)
}

func getConfig(_ *API, c *call) (any, error) {
	return c.read(query{
		keys: []state.Key{state.TableConfig.All()}, table: state.TableConfig, wholeTable: true,
		render: func(s *state.Snapshot) (any, uint64, error) {
			conf := configOf(s.Config())
			return &client.SchedulerConfigurationResponse{SchedulerConfig: conf, Index: s.Index()}, conf.ModifyIndex, nil
		},
	})
}

func configOf(m *model.SchedulerConfig) *client.SchedulerConfiguration {
	if m == nil {
		m = &model.SchedulerConfig{}
	}
	out := &client.SchedulerConfiguration{
		SchedulerAlgorithm: string(m.Algorithm), PauseEvalBroker: m.BrokerPaused, Policy: m.Policy, OnFault: m.OnFault,
		Coalescing: cloneBool(m.Coalescing), Shedding: cloneBool(m.Shedding), CreateIndex: m.ModifyIndex, ModifyIndex: m.ModifyIndex,
		FeatureGates: client.FeatureGates(m.Gates),
		PreemptionConfig: client.PreemptionConfig{
			SystemSchedulerEnabled: m.Preemption[model.JobSystem], SysBatchSchedulerEnabled: m.Preemption[model.JobSysBatch],
			BatchSchedulerEnabled: m.Preemption[model.JobBatch], ServiceSchedulerEnabled: m.Preemption[model.JobService],
			BindingSchedulerEnabled: m.Preemption[model.JobBinding],
		},
	}
	for t := range model.JobType(model.JobTypes) {
		if m.Observes(t) {
			out.PreemptionConfig.Observe = append(out.PreemptionConfig.Observe, t.String())
		}
	}
	for _, gate := range out.FeatureGates.All() {
		*gate.Value = cloneBool(*gate.Value)
	}
	if out.SchedulerAlgorithm == "" {
		out.SchedulerAlgorithm = string(model.Binpack)
	}
	if m.PriorityDelta != nil {
		delta := int(*m.PriorityDelta)
		out.PriorityDelta = &delta
	}
	if m.Moves != nil {
		out.Moves = &client.Moves{PerJob: int(m.Moves.Number), Window: m.Moves.Window}
	}
	return out
}

// cloneBool returns a copy, because decoding a request into the stored configuration
// would change it.
func cloneBool(b *bool) *bool {
	if b == nil {
		return nil
	}
	return new(*b)
}

// setConfig writes the configuration of a request. Without cas, it merges the request into
// a configuration that changes meanwhile again.
func setConfig(a *API, c *call) (any, error) {
	text, err := c.readBody(a.cfg.Limits.Body)
	if err != nil {
		return nil, err
	}
	check, err := queryCheck(c)
	if err != nil {
		return nil, err
	}
	index, err := a.cfg.Server.UpdateConfig(c.writeContext(), check, func(current *model.SchedulerConfig) error {
		merged, err := mergeConfig(current, text, a.cfg.Limits.Depth)
		if err == nil {
			*current = *merged
		}
		return err
	})
	var refused *apierror.Error
	if check != nil && errors.As(err, &refused) && refused.Code == apierror.CodeConflict {
		c.setIndexHeaders(index)
		return &client.SchedulerSetConfigurationResponse{Index: index}, nil
	}
	if err != nil {
		return nil, err
	}
	c.setIndexHeaders(index)
	return &client.SchedulerSetConfigurationResponse{Updated: true, Index: index}, nil
}

// mergeConfig decodes a request over the current configuration, so that a client that has
// only Nomad's fields retains the others.
func mergeConfig(current *model.SchedulerConfig, text []byte, depth int) (*model.SchedulerConfig, error) {
	conf := configOf(current)
	unknown, err := rest.Decode(text, conf, depth)
	if err != nil {
		return nil, err
	}
	if err := checkFeatureGates(text); err != nil {
		return nil, err
	}
	if len(unknown) > 0 {
		return nil, rest.Invalid("the configuration has unsupported fields: %s", strings.Join(unknown, ", ")).
			WithHint("remove them; GET /v1/scheduler/configuration returns the supported fields").With("Unknown", unknown)
	}
	if conf.MemoryOversubscriptionEnabled || conf.RejectJobRegistration {
		return nil, rest.Invalid("MemoryOversubscriptionEnabled and RejectJobRegistration are not supported: they must be false")
	}
	return configFrom(conf)
}

// checkFeatureGates returns an error if the request sets an unknown feature gate.
// Other unknown fields are ignored if they are false, but false is a setting of a
// gate.
func checkFeatureGates(text []byte) error {
	var body struct{ FeatureGates map[string]any }
	if err := json.Unmarshal(text, &body); err != nil {
		return nil //nolint:nilerr // Decode reports invalid JSON
	}
	known := rest.Fields(reflect.TypeFor[client.FeatureGates]())
	var unknown, paths []string
	for _, name := range slices.Sorted(maps.Keys(body.FeatureGates)) {
		if known[strings.ToLower(name)] == nil && len(unknown) < rest.MaxUnknownFields {
			unknown, paths = append(unknown, rest.Quote(name)), append(paths, rest.JoinPath("FeatureGates", name))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return rest.Invalid("unknown feature gate %s", strings.Join(unknown, ", ")).
		WithHint("the feature gates are %s", strings.Join(client.FeatureGateNames(), ", ")).With("Unknown", paths)
}

func configFrom(conf *client.SchedulerConfiguration) (*model.SchedulerConfig, error) {
	algorithm, err := model.ParseAlgorithm(conf.SchedulerAlgorithm)
	if err != nil {
		return nil, rest.Invalid("SchedulerAlgorithm: %v", err).With("Field", "SchedulerAlgorithm")
	}
	m := &model.SchedulerConfig{
		Algorithm: algorithm, Policy: conf.Policy, OnFault: conf.OnFault, BrokerPaused: conf.PauseEvalBroker,
		Coalescing: conf.Coalescing, Shedding: conf.Shedding, Gates: model.FeatureGates(conf.FeatureGates),
	}
	p := conf.PreemptionConfig
	m.Preemption[model.JobSystem], m.Preemption[model.JobSysBatch] = p.SystemSchedulerEnabled, p.SysBatchSchedulerEnabled
	m.Preemption[model.JobBatch], m.Preemption[model.JobService] = p.BatchSchedulerEnabled, p.ServiceSchedulerEnabled
	m.Preemption[model.JobBinding] = p.BindingSchedulerEnabled
	for _, name := range p.Observe {
		t, err := model.ParseJobType(name)
		if err != nil {
			return nil, rest.Invalid("PreemptionConfig.Observe: %v", err).With("Field", "PreemptionConfig.Observe")
		}
		m.Observe[t] = !m.Preemption[t] // a client that enables it may not have the field
	}
	if conf.PriorityDelta != nil {
		if *conf.PriorityDelta < 0 || *conf.PriorityDelta > math.MaxInt32 {
			return nil, rest.Invalid("invalid PriorityDelta %d: it must be between 0 and %d", *conf.PriorityDelta, math.MaxInt32).With("Field", "PriorityDelta")
		}
		delta := int32(*conf.PriorityDelta)
		m.PriorityDelta = &delta
	}
	if conf.Moves != nil {
		if err := checkMoves(conf.Moves); err != nil {
			return nil, err.WithHint("null for Moves turns moves off")
		}
		m.Moves = rateOf(conf.Moves)
	}
	return m, nil
}

func listClasses(_ *API, c *call) (any, error) {
	return c.read(query{
		keys: []state.Key{state.TableClasses.All()}, table: state.TableClasses, wholeTable: true,
		render: func(s *state.Snapshot) (any, uint64, error) {
			list := []*client.PriorityClass{}
			for _, p := range model.WithSystemClasses(s.PriorityClasses()) {
				list = append(list, view.PriorityClass(p))
			}
			return list, 0, nil
		},
	})
}

func getClass(_ *API, c *call) (any, error) {
	name := c.r.PathValue("name")
	return c.read(query{
		keys: []state.Key{state.TableClasses.Of(name)}, table: state.TableClasses, wholeTable: true,
		render: func(s *state.Snapshot) (any, uint64, error) {
			p := cmp.Or(s.PriorityClass(name), model.SystemClass(name))
			if p == nil {
				return nil, 0, rest.NotFound("priority class %s not found", rest.Quote(name)).WithHint("GET /v1/priority-classes lists them")
			}
			return view.PriorityClass(p), 0, nil
		},
	})
}

func putClass(a *API, c *call, req *client.PriorityClass) (any, error) {
	name := c.r.PathValue("name")
	if err := checkPathID("class", name, req.Name); err != nil {
		return nil, err
	}
	switch {
	case req.Value < math.MinInt32 || req.Value > math.MaxInt32: // the server validates the remaining range
		return nil, rest.Invalid("invalid Value %d: it must be between %d and %d", req.Value, math.MinInt32, model.HighestUserPriority).With("Field", "Value").
			WithHint("a class with a greater value has precedence; choose a value in this range")
	case req.PreemptionPolicy != "" && req.PreemptionPolicy != view.PreemptLower && req.PreemptionPolicy != view.PreemptNever:
		return nil, rest.Invalid("invalid PreemptionPolicy %s: it must be %s or %s", rest.Quote(req.PreemptionPolicy), view.PreemptLower, view.PreemptNever).With("Field", "PreemptionPolicy").
			WithHint("omit it for %s", view.PreemptLower)
	}
	return c.indexResponse(a.cfg.Server.PutPriorityClass(c.writeContext(), &model.PriorityClass{
		Name: name, Value: int32(req.Value), GlobalDefault: req.GlobalDefault,
		NeverPreempts: req.PreemptionPolicy == view.PreemptNever, Description: req.Description,
	}))
}

func deleteClass(a *API, c *call) (any, error) {
	return c.indexResponse(a.cfg.Server.DeletePriorityClass(c.writeContext(), c.r.PathValue("name")))
}

// indexResponse returns the response to a write that has no result but its index.
func (c *call) indexResponse(index uint64, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c.setIndexHeaders(index)
	return &client.IndexResponse{Index: index}, nil
}

// namespaceRoutes returns the routes of namespaces. A namespace that is not stored is
// listed while it contains objects.
func namespaceRoutes() []route {
	reader, operator := []acl.Role{acl.Read}, []acl.Role{acl.Operate}
	routes := []route{
		{
			methods: get, pattern: "/v1/namespaces", name: "namespaces_list", tag: tagJobs, roles: reader, scope: scopePublic,
			doc:     "Lists the namespace default, those that were created, and those that contain objects, ordered by name. A token that is restricted to a namespace sees only that one.",
			isQuery: true, isPaged: true, response: []*client.Namespace{}, handle: listNamespaces,
		},
		{
			methods: get, pattern: "/v1/namespace/{name}", name: "namespace_get", tag: tagJobs, roles: reader, scope: scopePublic,
			doc:     "Returns a namespace. A token that is restricted to a namespace sees only that one.",
			isQuery: true, response: client.Namespace{}, handle: getNamespace,
		},
		{
			methods: remove, pattern: "/v1/namespace/{name}", name: "namespace_delete", tag: tagJobs, roles: operator, leaderOnly: true,
			doc:      "Deletes a namespace that contains nothing. The namespace default cannot be deleted.",
			params:   []param{{"cas", "integer", "delete only if ModifyIndex has this value"}},
			response: client.IndexResponse{}, handle: deleteNamespace,
		},
	}
	for _, at := range []struct{ pattern, name, doc string }{
		{"/v1/namespace/{name}", "namespace_put", ""}, {"/v1/namespace", "namespace_register", " The body names it, as in Nomad."},
	} {
		routes = append(routes, route{
			methods: putMethods, pattern: at.pattern, name: at.name, tag: tagJobs, roles: operator, leaderOnly: true,
			doc:     "Creates or updates a namespace. If Weight is absent, the weight remains." + at.doc,
			params:  []param{{"cas", "integer", "write only if ModifyIndex has this value; 0: only if the namespace was not created"}},
			request: client.Namespace{}, response: client.IndexResponse{}, handle: withBody(putNamespace),
		})
	}
	return routes
}

// namespaceTables are the tables with namespaces and their objects.
var namespaceTables = []state.Table{state.TableNamespaces, state.TableJobs, state.TableBindings, state.TableBudgets}

// namespaceQuery returns a query for namespaces, whose result depends on their objects.
func namespaceQuery(a *API, render func(*state.Snapshot) (any, error)) query {
	v := query{}
	for _, t := range namespaceTables {
		v.keys = append(v.keys, t.All())
	}
	v.render = func(s *state.Snapshot) (any, uint64, error) {
		changed := uint64(0)
		for _, t := range namespaceTables {
			changed = max(changed, a.tables.changed(t))
		}
		result, err := render(s)
		return result, changed, err
	}
	return v
}

func listNamespaces(a *API, c *call) (any, error) {
	part, err := c.page()
	if err != nil {
		return nil, err
	}
	return c.read(namespaceQuery(a, func(s *state.Snapshot) (any, error) {
		p := pager[*client.Namespace]{page: part}
		for _, n := range namespacesOf(s) {
			if c.canSee(n.Name) && strings.HasPrefix(n.Name, queryPrefix(c)) && !p.add(pageKey(n.Name), func() *client.Namespace { return n }) {
				break
			}
		}
		return p.result(c), nil
	}))
}

func getNamespace(a *API, c *call) (any, error) {
	name := c.r.PathValue("name")
	return c.read(namespaceQuery(a, func(s *state.Snapshot) (any, error) {
		list := namespacesOf(s)
		at := slices.IndexFunc(list, func(n *client.Namespace) bool { return n.Name == name })
		if at < 0 || !c.canSee(name) {
			return nil, rest.NotFound("namespace %s not found", rest.Quote(name)).WithHint("GET /v1/namespaces lists them")
		}
		return list[at], nil
	}))
}

func putNamespace(a *API, c *call, req *client.Namespace) (any, error) {
	name := cmp.Or(c.r.PathValue("name"), req.Name)
	if err := checkPathID("namespace", name, req.Name); err != nil {
		return nil, err
	}
	check, err := queryCheck(c)
	if err != nil {
		return nil, err
	}
	return c.indexResponse(a.cfg.Server.PutNamespace(c.writeContext(), endpoint.NamespaceRequest{
		Name: name, Description: req.Description, Weight: req.Weight, Check: check,
	}))
}

func deleteNamespace(a *API, c *call) (any, error) {
	check, err := queryCheck(c)
	if err != nil {
		return nil, err
	}
	return c.indexResponse(a.cfg.Server.DeleteNamespace(c.writeContext(), c.r.PathValue("name"), check))
}

// namespacesOf returns the namespace default, the stored namespaces, and those that
// contain objects, ascending by name.
func namespacesOf(s *state.Snapshot) []*client.Namespace {
	found := map[string]*client.Namespace{}
	in := func(name string) *client.Namespace {
		if found[name] == nil {
			found[name] = &client.Namespace{Name: name, Weight: new(s.NamespaceWeight(name))}
		}
		return found[name]
	}
	in(model.DefaultNamespace)
	for _, n := range s.Namespaces() {
		own := in(n.Name)
		own.Description, own.CreateIndex, own.ModifyIndex = n.Description, n.CreateIndex, n.ModifyIndex
	}
	for j := range s.Jobs() {
		in(j.Namespace).Jobs++
	}
	for b := range s.Bindings() {
		in(b.Namespace).Bindings++
	}
	for _, b := range s.Budgets() {
		in(b.Namespace).Budgets++
	}
	list := make([]*client.Namespace, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list = append(list, found[name])
	}
	return list
}

func rebalanceRoutes(operator []acl.Role) []route {
	return []route{
		{
			methods: post, pattern: "/v1/rebalance/plan", name: "rebalance_plan", tag: tagScheduler, roles: operator, leaderOnly: true, isRead: true,
			doc:     "Returns the moves that would make room for jobs that wait, and a token that applies them.",
			request: client.RebalancePlanRequest{}, response: client.RebalancePlan{}, handle: withBody(planRebalance),
		},
		{
			methods: post, pattern: "/v1/rebalance", name: "rebalance_run", tag: tagScheduler, roles: operator, leaderOnly: true,
			doc:     "Applies the moves that a plan proposed. Steps that no longer hold are reported.",
			request: client.RebalanceRequest{}, response: client.RebalanceResult{}, handle: withTokenBody(runRebalance),
		},
	}
}

// checkMoves returns an error if a limit on moves is out of range.
func checkMoves(m *client.Moves) *rest.Failure {
	var problems []string
	field := "Moves.Window"
	if m.PerJob < 1 || m.PerJob > math.MaxInt32 {
		field = "Moves.PerJob"
		problems = append(problems, fmt.Sprintf("invalid Moves.PerJob %d: it must be between 1 and %d", m.PerJob, math.MaxInt32))
	}
	if m.Window <= 0 {
		problems = append(problems, fmt.Sprintf("invalid Moves.Window %d: it must be above 0, in nanoseconds", m.Window))
	}
	if len(problems) == 0 {
		return nil
	}
	return rest.Invalid("%s", strings.Join(problems, "; ")).With("Field", field)
}

func rateOf(m *client.Moves) *model.Rate {
	return &model.Rate{Number: int32(m.PerJob), Window: m.Window}
}

func planRebalance(a *API, c *call, req *client.RebalancePlanRequest) (any, error) {
	var moves *model.Rate
	if req.Moves != nil {
		if err := checkMoves(req.Moves); err != nil {
			return nil, err
		}
		moves = rateOf(req.Moves)
	}
	r, err := a.cfg.Server.PlanRebalance(c.writeContext(), moves)
	if err != nil {
		return nil, err
	}
	c.setIndexHeaders(r.Index)
	return rebalancePlan(a.cfg.Server.Snapshot(), r), nil
}

func rebalancePlan(s *state.Snapshot, r *endpoint.Rebalancing) *client.RebalancePlan {
	out := &client.RebalancePlan{
		PlanToken: r.Token, Expires: r.Expires, Index: r.Index, Omitted: r.Omitted, Steps: []client.RebalanceStep{},
		Moves: &client.Moves{PerJob: int(r.Moves.Number), Window: r.Moves.Window},
	}
	for i := range r.Steps {
		x := &r.Steps[i]
		step := client.RebalanceStep{JobID: x.Plan.Job.ID, Namespace: x.Plan.Job.Namespace, Priority: int(x.Plan.Priority), LostWork: x.LostWork}
		for _, p := range x.Place {
			step.Place = append(step.Place, view.AllocStub(s, p))
		}
		for _, m := range x.Move {
			step.Move = append(step.Move, view.AllocStub(s, m))
		}
		for k := range x.Stop {
			step.Stop = append(step.Stop, rebalanceStop(&x.Stop[k]))
		}
		out.Steps = append(out.Steps, step)
	}
	return out
}

func rebalanceStop(x *rebalance.Stop) client.RebalanceStop {
	a := x.Alloc
	out := client.RebalanceStop{
		AllocID: a.ID, JobID: a.Job.ID, Namespace: a.Job.Namespace, TaskGroup: a.Group.Name, NodeID: a.NodeID, LostWork: x.LostWork,
	}
	if x.Next != nil {
		out.NextAllocation, out.IsMove = x.Next.ID, x.Next.MovedFrom != ""
	}
	return out
}

func runRebalance(a *API, c *call, req *client.RebalanceRequest) (any, error) {
	if req.PlanToken == "" {
		return nil, rest.Invalid("PlanToken is required").With("Field", "PlanToken").WithHint("POST /v1/rebalance/plan returns one, unless nothing would be moved")
	}
	steps, index, err := a.cfg.Server.RunRebalance(c.writeContext(), req.PlanToken)
	if err != nil {
		return nil, err
	}
	c.setIndexHeaders(index)
	out := &client.RebalanceResult{Index: index}
	for _, x := range steps {
		out.Steps = append(out.Steps, client.RebalanceStepResult{
			JobID: x.Job.ID, Namespace: x.Job.Namespace, Placed: x.Placed, Moved: x.Moved, Rejected: x.Rejected, EvalID: x.EvalID,
		})
	}
	return out, nil
}
