package scenario

import (
	"reflect"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/jsonschema"
)

// The types of this package are the schema: their JSON names are the fields of a
// document. The tables below add the rules that Go types cannot express.

// plan decodes the values of one type.
type plan struct {
	noun   string // noun for messages: a node, jobs
	schema *jsonschema.Schema
	decode func(d *decoder, v reflect.Value, ev event)
}

// structPlan decodes one kind of mapping.
type structPlan struct {
	fields      []fieldPlan
	byName      map[string]int
	required    []requirement
	alternative int // field that replaces all required fields but the first; -1 if there is none
}

// requirement is a required field and the hint if it is missing.
type requirement struct {
	field int
	hint  string
}

type fieldPlan struct {
	name  string
	index []int
	plan  *plan
}

// typeNames holds the nouns of the types, for messages.
var typeNames = map[reflect.Type][2]string{ // singular, plural
	reflect.TypeFor[File]():                 {"a scenario", ""},
	reflect.TypeFor[Scheduler]():            {"a scheduler configuration", ""},
	reflect.TypeFor[Preemption]():           {"a mapping from job types to true, false or observe", ""},
	reflect.TypeFor[FeatureGates]():         {"feature gates", ""},
	reflect.TypeFor[Moves]():                {"a limit on moves", ""},
	reflect.TypeFor[PolicyVariant]():        {"a policy variant", "policy variants"},
	reflect.TypeFor[Namespace]():            {"a namespace", "namespaces"},
	reflect.TypeFor[PriorityClass]():        {"a priority class", "priority classes"},
	reflect.TypeFor[Node]():                 {"a node", "nodes"},
	reflect.TypeFor[Device]():               {"a device group", "device groups"},
	reflect.TypeFor[Taint]():                {"a taint", "taints"},
	reflect.TypeFor[Cluster]():              {"a member cluster", "member clusters"},
	reflect.TypeFor[Binding]():              {"a binding", "bindings"},
	reflect.TypeFor[ClusterSpread]():        {"a spread over clusters", ""},
	reflect.TypeFor[Job]():                  {"a job", "jobs"},
	reflect.TypeFor[PreemptionToleration](): {"a preemption toleration", ""},
	reflect.TypeFor[Group]():                {"a group", "groups"},
	reflect.TypeFor[Disconnect]():           {"a disconnect configuration", ""},
	reflect.TypeFor[Toleration]():           {"a toleration", "tolerations"},
	reflect.TypeFor[DeviceRequest]():        {"a device request", "device requests"},
	reflect.TypeFor[Constraint]():           {"a constraint", "constraints"},
	reflect.TypeFor[Affinity]():             {"an affinity", "affinities"},
	reflect.TypeFor[Spread]():               {"a spread", "spreads"},
	reflect.TypeFor[LabelTerm]():            {"a term of labels and topologyKey", "terms of labels and topologyKey"},
	reflect.TypeFor[Budget]():               {"a disruption budget", "disruption budgets"},
	reflect.TypeFor[Running]():              {"a running allocation", "running allocations"},
	reflect.TypeFor[Event]():                {"an event", "events"},
	reflect.TypeFor[Expect]():               {"expectations", ""},
	reflect.TypeFor[ExpectPlacement]():      {"an expected placement", "expected placements"},
	reflect.TypeFor[ExpectBinding]():        {"an expected binding", "expected bindings"},
	reflect.TypeFor[ExpectUnplaced]():       {"an expected unplaced group", "expected unplaced groups"},
	reflect.TypeFor[string]():               {"a string", "strings"},
	reflect.TypeFor[uint16]():               {"a port", "ports"},
}

// alternatives names the field that selects another kind of element. If it is present,
// only the id of the required fields must be set.
var alternatives = map[reflect.Type]string{reflect.TypeFor[Running](): "binding"}

// required lists the required fields and their hints. It holds fields with a valid zero
// value, because only the decoder can distinguish 0 from absent, and fields whose absence
// makes an element useless, to bound the elements of a hostile file.
var required = map[reflect.Type][][2]string{
	reflect.TypeFor[File]():          {{"version", "1"}, {"name", nameHint}},
	reflect.TypeFor[PolicyVariant](): {{"name", nameHint}},
	reflect.TypeFor[Namespace]():     {{"name", nameHint}},
	reflect.TypeFor[PriorityClass](): {{"name", nameHint}, {"value", "an integer"}},
	reflect.TypeFor[Node]():          {{"id", nameHint}},
	reflect.TypeFor[Device]():        {{"id", "vendor/type/model"}, {"count", "an integer"}},
	reflect.TypeFor[Taint]():         {{"key", "a key such as gpu"}, {"effect", "NoSchedule, PreferNoSchedule or NoExecute"}},
	reflect.TypeFor[Budget]():        {{"name", nameHint}},
	reflect.TypeFor[Cluster]():       {{"id", nameHint}},
	reflect.TypeFor[Binding]():       {{"id", nameHint}},
	reflect.TypeFor[Job]():           {{"id", nameHint}, {"groups", "at least one, such as `[{name: main, count: 1, resources: {cpu: 500}}]`"}},
	reflect.TypeFor[Group]():         {{"name", nameHint}},
	reflect.TypeFor[DeviceRequest](): {{"id", "type, vendor/type or vendor/type/model"}},
	reflect.TypeFor[Running]():       {{"id", nameHint}, {"job", "one of `jobs`"}, {"group", "one of the job's groups"}, {"node", "one of `nodes`"}},
	reflect.TypeFor[Event]():         {{"at", "a duration such as 90s"}},
}

// enums lists the values of fields that accept some texts only. The validation and the JSON
// Schema read it.
var enums = map[reflect.Type]map[string][]string{
	reflect.TypeFor[Scheduler]():     {"algorithm": {"binpack", "spread"}},
	reflect.TypeFor[PriorityClass](): {"preemptionPolicy": preemptionPolicies},
	reflect.TypeFor[Job]():           {"type": {"service", "batch", "system", "sysbatch"}, "preemptionPolicy": preemptionPolicies, "disruptionMode": disruptionModes},
	reflect.TypeFor[Binding]():       {"scope": {scopeNamespace, scopeCluster}, "preemptionPolicy": preemptionPolicies, "replicaScheduling": {divided, duplicated}},
	reflect.TypeFor[Budget]():        {"enforcement": {enforceBestEffort, enforceStrict}},
	reflect.TypeFor[Taint]():         {"effect": taintEffects},
	reflect.TypeFor[Constraint]():    {"operator": operators},
	reflect.TypeFor[Toleration]():    {"effect": taintEffects, "operator": {string(model.TolerationEqual), string(model.TolerationExists)}},
}

// operators lists the operators of constraints.
var operators = func() (list []string) {
	for _, o := range model.Operators {
		list = append(list, string(o))
	}
	return list
}()

var taintEffects = []string{string(model.NoSchedule), string(model.PreferNoSchedule), string(model.NoExecute)}

// valuesOf returns the values of a field of enums.
func valuesOf[T any](field string) []string { return enums[reflect.TypeFor[T]()][field] }

// presets holds the initial value of a type if absence means something other than the
// zero value and the field is not a pointer.
var presets = map[reflect.Type]reflect.Value{
	reflect.TypeFor[Affinity](): reflect.ValueOf(Affinity{Weight: defaultWeight}),
}

// specialPlan returns the plan of a type with its own notation, or nil.
func specialPlan(t reflect.Type) *plan {
	switch t {
	case reflect.TypeFor[Duration]():
		return &plan{noun: "a duration", schema: jsonschema.Duration(), decode: decodeDuration}
	case reflect.TypeFor[Bound]():
		bound := jsonschema.NumberOr(`^[0-9]+%$`)
		bound.Minimum = new(0.0)
		return &plan{noun: "a number, or a percentage", schema: bound, decode: decodeBound}
	case reflect.TypeFor[PreemptionMode]():
		return &plan{
			noun: "true, false or observe", decode: decodePreemptionMode,
			schema: jsonschema.AnyOf(jsonschema.Bool(), &jsonschema.Schema{Types: []string{"string"}, Enum: []string{observeText}}),
		}
	case reflect.TypeFor[ExpectClusters]():
		return &plan{
			noun: "a list of clusters, or a mapping from them to replicas", decode: decodeExpectClusters,
			schema: jsonschema.AnyOf(jsonschema.List(jsonschema.Text()), jsonschema.Map(jsonschema.Int32())),
		}
	case reflect.TypeFor[Quantities]():
		return &plan{noun: "a mapping from resources to amounts", schema: jsonschema.Map(jsonschema.Quantity()), decode: decodeQuantities}
	case reflect.TypeFor[map[string]any]():
		return &plan{noun: "a mapping", schema: jsonschema.Free(), decode: decodeConfig}
	}
	return nil
}

var filePlan = newPlan(reflect.TypeFor[File]())

// newPlan returns the plan of a type.
func newPlan(t reflect.Type) *plan {
	if p := specialPlan(t); p != nil {
		return p
	}
	switch t.Kind() {
	case reflect.Pointer:
		return pointerPlan(newPlan(t.Elem()))
	case reflect.Struct:
		return newStructPlan(t)
	case reflect.Slice:
		return slicePlan(newPlan(t.Elem()), typeNames[t.Elem()][1])
	case reflect.Map:
		return mapPlan(newPlan(t.Elem()), t.Elem().Kind() == reflect.String)
	case reflect.String:
		return &plan{noun: "a string", schema: jsonschema.Text(), decode: decodeString}
	case reflect.Bool:
		return &plan{noun: "true or false", schema: jsonschema.Bool(), decode: decodeBool}
	case reflect.Float64:
		return &plan{noun: "a number", schema: jsonschema.Number(), decode: decodeFloat}
	case reflect.Uint16, reflect.Uint64:
		return uintPlan(t)
	case reflect.Int, reflect.Int32:
		return intPlan(t)
	}
	panic("scenario: no plan for " + t.String())
}

func newStructPlan(t reflect.Type) *plan {
	s := &structPlan{byName: map[string]int{}, alternative: -1}
	s.addFields(t, nil)
	if name, ok := alternatives[t]; ok {
		s.alternative = s.byName[name]
	}
	for _, r := range required[t] {
		s.required = append(s.required, requirement{field: s.byName[r[0]], hint: r[1]})
	}
	preset, ok := presets[t]
	return &plan{noun: typeNames[t][0], schema: s.schema(t), decode: func(d *decoder, v reflect.Value, ev event) {
		if ev.kind != kindObject {
			d.wrongType(ev, typeNames[t][0], "write its fields as {field: value} or as indented lines; fields: "+s.names())
			return
		}
		if ok {
			v.Set(preset)
		}
		s.decode(d, v, ev)
	}}
}

// addFields adds the fields of a struct and of its embedded structs.
func (s *structPlan) addFields(t reflect.Type, at []int) {
	for i := range t.NumField() {
		field := t.Field(i)
		index := append(slices.Clip(at), i)
		if field.Anonymous {
			s.addFields(field.Type, index)
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		p := newPlan(field.Type)
		if t == reflect.TypeFor[Constraint]() && name == "value" {
			index = at // one document field, two Go fields: Value and Values
			p = &plan{
				noun: "a string, a number, true, false or a list of them", decode: decodeOperand,
				schema: jsonschema.AnyOf(jsonschema.Scalar(), jsonschema.List(jsonschema.Scalar())),
			}
		}
		if (t == reflect.TypeFor[Group]() || t == reflect.TypeFor[Binding]()) && name == "duration" {
			p = &plan{noun: p.noun, schema: p.schema, decode: decodePositive}
		}
		if values := enums[t][name]; values != nil {
			p.schema = jsonschema.OneOf(append(slices.Clip(values), "")...)
		}
		s.byName[name] = len(s.fields)
		s.fields = append(s.fields, fieldPlan{name: name, index: index, plan: p})
	}
}

// schema returns the fields of type t as a JSON Schema. If another field replaces required ones, only
// the first is required.
func (s *structPlan) schema(t reflect.Type) *jsonschema.Schema {
	object := jsonschema.Object()
	for i := range s.fields {
		field := s.fields[i].plan.schema
		if !strictTypes[t] && s.fields[i].name != "expect" {
			field = jsonschema.Nullable(field)
		}
		object.Set(s.fields[i].name, field)
	}
	for i, r := range s.required {
		if i > 0 && s.alternative >= 0 {
			break
		}
		name := s.fields[r.field].name
		types := object.Properties[name].Types
		if isNumber := slices.Contains(types, "integer") || slices.Contains(types, "number"); isNumber && minimums[t][name] <= 0 {
			object.Required = append(object.Required, name) // null counts as 0
			continue
		}
		object.Require(name)
	}
	object.Require(nonEmpty[t]...)
	if t == reflect.TypeFor[Constraint]() {
		object.RequireUnless("attribute", "operator", string(model.OpDistinctHosts))
	}
	for name, least := range minimums[t] {
		object.SetMinimum(name, least)
	}
	return object
}

// strictTypes are types in which null is an error.
var strictTypes = map[reflect.Type]bool{
	reflect.TypeFor[Expect](): true, reflect.TypeFor[ExpectPlacement](): true, reflect.TypeFor[ExpectBinding](): true, reflect.TypeFor[ExpectUnplaced](): true,
}

// nonEmpty lists fields that the validation requires after decoding, for the JSON Schema.
var nonEmpty = map[reflect.Type][]string{
	reflect.TypeFor[PolicyVariant](): {"use"},
	reflect.TypeFor[Constraint]():    {"operator"},
	reflect.TypeFor[Affinity]():      {"attribute", "operator"},
	reflect.TypeFor[Spread]():        {"attribute"},
	reflect.TypeFor[LabelTerm]():     {"labels"},
	reflect.TypeFor[Budget]():        {"labels"},
}

// minimums lists the least values of numbers that the validation checks, for the JSON Schema.
var minimums = map[reflect.Type]map[string]float64{
	reflect.TypeFor[File]():           {"version": 1},
	reflect.TypeFor[Moves]():          {"perJob": 1},
	reflect.TypeFor[Node]():           {"count": 0},
	reflect.TypeFor[Device]():         {"count": 0},
	reflect.TypeFor[Group]():          {"count": 0, "minCount": 0, "maxParallelEvictions": 0},
	reflect.TypeFor[DeviceRequest]():  {"count": 1},
	reflect.TypeFor[Spread]():         {"weight": 1},
	reflect.TypeFor[Binding]():        {"replicas": 0, "minReplicas": 0},
	reflect.TypeFor[ClusterSpread]():  {"minGroups": 1, "maxClusters": 1},
	reflect.TypeFor[ExpectUnplaced](): {"count": 1},
}

// Schema returns the JSON Schema of a scenario.
func Schema() *jsonschema.Schema { return filePlan.schema }

// BudgetSchema returns the JSON Schema of a disruption budget.
func BudgetSchema() *jsonschema.Schema { return newPlan(reflect.TypeFor[Budget]()).schema }

func (s *structPlan) names() string {
	names := make([]string, len(s.fields))
	for i := range s.fields {
		names[i] = s.fields[i].name
	}
	return strings.Join(names, ", ")
}
