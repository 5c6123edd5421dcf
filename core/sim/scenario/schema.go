package scenario

import (
	"reflect"
	"slices"
	"strings"
)

// The types of this package are the schema: their JSON names are the fields
// that a document may have. What the types cannot say stands here.

// plan is how values of one type are decoded.
type plan struct {
	what   string // a node, jobs: for messages
	decode func(d *decoder, v reflect.Value, ev event)
}

// structPlan is how one kind of mapping is decoded.
type structPlan struct {
	fields      []fieldPlan
	byName      map[string]int
	required    []requirement
	alternative int // field that spares all of required but the first; -1: none does
}

// requirement is a field that must be there, and what to write.
type requirement struct {
	field int
	what  string
}

type fieldPlan struct {
	name  string
	index []int
	plan  *plan
}

// typeNames describes the types that a message may have to name.
var typeNames = map[reflect.Type][2]string{ // one, many
	reflect.TypeFor[File]():                 {"a scenario", ""},
	reflect.TypeFor[Scheduler]():            {"a scheduler configuration", ""},
	reflect.TypeFor[Preemption]():           {"a mapping from job types to true or false", ""},
	reflect.TypeFor[PolicyVariant]():        {"a policy variant", "policy variants"},
	reflect.TypeFor[Namespace]():            {"a namespace", "namespaces"},
	reflect.TypeFor[PriorityClass]():        {"a priority class", "priority classes"},
	reflect.TypeFor[Node]():                 {"a node", "nodes"},
	reflect.TypeFor[Device]():               {"a group of devices", "groups of devices"},
	reflect.TypeFor[Taint]():                {"a taint", "taints"},
	reflect.TypeFor[Cluster]():              {"a member cluster", "member clusters"},
	reflect.TypeFor[Binding]():              {"a binding", "bindings"},
	reflect.TypeFor[ClusterSpread]():        {"a spread over clusters", ""},
	reflect.TypeFor[Job]():                  {"a job", "jobs"},
	reflect.TypeFor[PreemptionToleration](): {"a preemption toleration", ""},
	reflect.TypeFor[Group]():                {"a group", "groups"},
	reflect.TypeFor[Disconnect]():           {"what happens while a node is silent", ""},
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
	reflect.TypeFor[string]():               {"a text", "texts"},
	reflect.TypeFor[uint16]():               {"a port", "ports"},
}

// alternatives names the field that makes an element something else, of which only the
// id is required of what stands in required.
var alternatives = map[reflect.Type]string{reflect.TypeFor[Running](): "binding"}

// required lists fields that must be there, and what to write in them: those
// whose zero value is as good as any other, so that only the decoder can tell
// that they are missing, and those without which an element is rubbish, of
// which a hostile file may have millions.
var required = map[reflect.Type][][2]string{
	reflect.TypeFor[File]():          {{"version", "1"}, {"name", nameHint}},
	reflect.TypeFor[PolicyVariant](): {{"name", nameHint}},
	reflect.TypeFor[Namespace]():     {{"name", nameHint}},
	reflect.TypeFor[PriorityClass](): {{"name", nameHint}, {"value", "a whole number"}},
	reflect.TypeFor[Node]():          {{"id", nameHint}},
	reflect.TypeFor[Device]():        {{"id", "vendor/type/model"}, {"count", "a whole number"}},
	reflect.TypeFor[Taint]():         {{"key", "a word such as gpu"}, {"effect", "NoSchedule, PreferNoSchedule or NoExecute"}},
	reflect.TypeFor[Budget]():        {{"name", nameHint}},
	reflect.TypeFor[Cluster]():       {{"id", nameHint}},
	reflect.TypeFor[Binding]():       {{"id", nameHint}},
	reflect.TypeFor[Job]():           {{"id", nameHint}, {"groups", "at least one, such as `[{name: main, count: 1, resources: {cpu: 500}}]`"}},
	reflect.TypeFor[Group]():         {{"name", nameHint}},
	reflect.TypeFor[DeviceRequest](): {{"id", "type, vendor/type or vendor/type/model"}},
	reflect.TypeFor[Running]():       {{"id", nameHint}, {"job", "one of `jobs`"}, {"group", "one of the job's groups"}, {"node", "one of `nodes`"}},
	reflect.TypeFor[Event]():         {{"at", "a duration such as 90s"}},
}

// presets holds what a value is before its fields are read, where the zero
// value is not what absence means and no pointer says so.
var presets = map[reflect.Type]reflect.Value{
	reflect.TypeFor[Affinity](): reflect.ValueOf(Affinity{Weight: defaultWeight}),
}

// specialPlan types have a notation of their own.
func specialPlan(t reflect.Type) *plan {
	switch t {
	case reflect.TypeFor[Duration]():
		return &plan{what: "a duration", decode: decodeDuration}
	case reflect.TypeFor[Bound]():
		return &plan{what: "a number, or a percentage", decode: decodeBound}
	case reflect.TypeFor[ExpectClusters]():
		return &plan{what: "a list of clusters, or a mapping from them to replicas", decode: decodeExpectClusters}
	case reflect.TypeFor[Quantities]():
		return &plan{what: "a mapping from resources to amounts", decode: decodeQuantities}
	case reflect.TypeFor[map[string]any]():
		return &plan{what: "a mapping", decode: decodeConfig}
	}
	return nil
}

var filePlan = newPlan(reflect.TypeFor[File]())

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
		return &plan{what: "a text", decode: decodeString}
	case reflect.Bool:
		return &plan{what: "true or false", decode: decodeBool}
	case reflect.Float64:
		return &plan{what: "a number", decode: decodeFloat}
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
		s.required = append(s.required, requirement{field: s.byName[r[0]], what: r[1]})
	}
	preset, ok := presets[t]
	return &plan{what: typeNames[t][0], decode: func(d *decoder, v reflect.Value, ev event) {
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

// addFields adds the fields of a struct and of what it embeds.
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
			index = at // it is two fields, Value and Values
			p = &plan{what: "a text, a number, true, false or a list of them", decode: decodeOperand}
		}
		if (t == reflect.TypeFor[Group]() || t == reflect.TypeFor[Binding]()) && name == "duration" {
			p = &plan{what: p.what, decode: decodePositive}
		}
		s.byName[name] = len(s.fields)
		s.fields = append(s.fields, fieldPlan{name: name, index: index, plan: p})
	}
}

func (s *structPlan) names() string {
	names := make([]string, len(s.fields))
	for i := range s.fields {
		names[i] = s.fields[i].name
	}
	return strings.Join(names, ", ")
}
