package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/api/view"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/apierror"
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
	return append(routes,
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
			request: client.PriorityClass{}, response: client.IndexResponse{}, handle: putClass,
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

// setConfig decodes the request over the stored configuration, so that a client that
// has only Nomad's fields keeps the others.
func setConfig(a *API, c *call) (any, error) {
	text, err := c.readBody(a.cfg.Limits.Body)
	if err != nil {
		return nil, err
	}
	current := a.cfg.Server.Snapshot().Config()
	conf := configOf(current)
	unknown, err := rest.Decode(text, conf, a.cfg.Limits.Depth)
	if err != nil {
		return nil, err
	}
	if err := checkFeatureGates(text); err != nil {
		return nil, err
	}
	if len(unknown) > 0 {
		return nil, rest.Invalid("the configuration has unsupported fields: %v", unknown).
			WithHint("remove them; GET /v1/scheduler/configuration returns the supported fields").With("Unknown", unknown)
	}
	if conf.MemoryOversubscriptionEnabled || conf.RejectJobRegistration {
		return nil, rest.Invalid("MemoryOversubscriptionEnabled and RejectJobRegistration are not supported: they must be false")
	}
	m, err := configFrom(conf)
	if err != nil {
		return nil, err
	}
	var check *uint64
	if c.r.URL.Query().Has("cas") {
		n, err := queryNumber(c, "cas")
		if err != nil {
			return nil, err
		}
		check = &n
	}
	ctx, cancel := c.writeContext()
	defer cancel()
	index, err := a.cfg.Server.SetConfig(ctx, m, check)
	var refused *apierror.Error
	if check != nil && errors.As(err, &refused) && refused.Code == apierror.CodeConflict {
		snap := a.cfg.Server.Snapshot()
		c.setStateHeaders(snap)
		return &client.SchedulerSetConfigurationResponse{Index: snap.Index()}, nil
	}
	if err != nil {
		return nil, err
	}
	c.setIndexHeaders(index)
	return &client.SchedulerSetConfigurationResponse{Updated: true, Index: index}, nil
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
	if conf.PriorityDelta != nil {
		if *conf.PriorityDelta < 0 || *conf.PriorityDelta > math.MaxInt32 {
			return nil, rest.Invalid("invalid PriorityDelta %d: it must be between 0 and %d", *conf.PriorityDelta, math.MaxInt32).With("Field", "PriorityDelta")
		}
		delta := int32(*conf.PriorityDelta)
		m.PriorityDelta = &delta
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

func putClass(a *API, c *call) (any, error) {
	var req client.PriorityClass
	if err := c.decodeBody(&req); err != nil {
		return nil, err
	}
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
	ctx, cancel := c.writeContext()
	defer cancel()
	return c.indexResponse(a.cfg.Server.PutPriorityClass(ctx, &model.PriorityClass{
		Name: name, Value: int32(req.Value), GlobalDefault: req.GlobalDefault,
		NeverPreempts: req.PreemptionPolicy == view.PreemptNever, Description: req.Description,
	}))
}

func deleteClass(a *API, c *call) (any, error) {
	ctx, cancel := c.writeContext()
	defer cancel()
	return c.indexResponse(a.cfg.Server.DeletePriorityClass(ctx, c.r.PathValue("name")))
}

// indexResponse returns the response to a write that has no result but its index.
func (c *call) indexResponse(index uint64, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c.setIndexHeaders(index)
	return &client.IndexResponse{Index: index}, nil
}

// namespaceRoutes returns the routes of namespaces. A namespace is not created
// explicitly: it exists while it contains objects.
func namespaceRoutes() []route {
	return []route{{
		methods: get, pattern: "/v1/namespaces", name: "namespaces_list", tag: tagJobs, roles: []acl.Role{acl.Read}, scope: scopePublic,
		doc:      "Lists the namespaces that contain objects, ordered by name. A token that is restricted to a namespace sees only that one.",
		response: []*client.Namespace{}, handle: listNamespaces,
	}}
}

func listNamespaces(a *API, c *call) (any, error) {
	snap := a.cfg.Server.Snapshot()
	c.setStateHeaders(snap)
	found := map[string]*client.Namespace{}
	in := func(name string) *client.Namespace {
		if found[name] == nil {
			found[name] = &client.Namespace{Name: name}
		}
		return found[name]
	}
	for j := range snap.Jobs() {
		in(j.Namespace).Jobs++
	}
	for b := range snap.Bindings() {
		in(b.Namespace).Bindings++
	}
	for _, b := range snap.Budgets() {
		in(b.Namespace).Budgets++
	}
	list := []*client.Namespace{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if c.canSee(name) {
			list = append(list, found[name])
		}
	}
	return list, nil
}
