package scenario

import "encoding/json"

// File is one scenario document, version 1, as written: quantities are converted,
// durations are nanoseconds, nothing else is resolved. A nil pointer means that the
// field is absent.
type File struct {
	Version     int             `json:"version"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Seed        uint64          `json:"seed,omitempty"`
	Scheduler   Scheduler       `json:"scheduler,omitzero"`
	Policies    []PolicyVariant `json:"policies,omitempty"`
	Namespaces  []Namespace     `json:"namespaces,omitempty"`
	Classes     []PriorityClass `json:"priorityClasses,omitempty"`
	Nodes       []Node          `json:"nodes,omitempty"`
	Clusters    []Cluster       `json:"clusters,omitempty"`
	Jobs        []Job           `json:"jobs,omitempty"`
	Budgets     []Budget        `json:"budgets,omitempty"`
	Bindings    []Binding       `json:"bindings,omitempty"`
	Running     []Running       `json:"running,omitempty"`
	Events      []Event         `json:"events,omitempty"`
	Until       *Duration       `json:"until,omitempty"`
	TieOrder    []string        `json:"tieOrder,omitempty"`
	// Durations are those for which instances such as job.group[0] run, if they differ from
	// what their group states. Only the simulator reads them: to policies and plays, an instance
	// has the duration of its group.
	Durations map[string]Duration `json:"durations,omitempty"`
	Expect    *Expect             `json:"expect,omitempty"`
}

// Duration is a number of nanoseconds, written as "1h30m" or as a number of seconds.
// Times are durations since the start of the scenario.
type Duration int64

// Scheduler configures the run. Absent fields take the documented defaults.
type Scheduler struct {
	Algorithm     string       `json:"algorithm,omitempty"`
	Preemption    *Preemption  `json:"preemption,omitempty"`
	PriorityDelta *int32       `json:"priorityDelta,omitempty"`
	Policy        string       `json:"policy,omitempty"`
	FeatureGates  FeatureGates `json:"featureGates,omitzero"`
	Moves         *Moves       `json:"moves,omitempty"`
}

// Moves allows instances to be moved to other nodes, to make room for instances that fit
// nowhere. If absent, nothing is moved.
type Moves struct {
	PerJob int32    `json:"perJob"`           // instances of one job that may be moved within the window: 1 to 2147483647
	Window Duration `json:"window,omitempty"` // above 0
}

// FeatureGates control how bindings use priorities. If absent, the first two are on
// and the last is off.
type FeatureGates struct {
	PriorityBasedScheduling           *bool `json:"PriorityBasedScheduling,omitempty"`
	PriorityBasedPreemptiveScheduling *bool `json:"PriorityBasedPreemptiveScheduling,omitempty"`
	StrictPriorityClasses             *bool `json:"StrictPriorityClasses,omitempty"`
}

// Preemption enables preemption by job type: true, false, or observe. The default of each
// field, and of the whole block, is true.
type Preemption struct {
	Service  *PreemptionMode `json:"service,omitempty"`
	Batch    *PreemptionMode `json:"batch,omitempty"`
	System   *PreemptionMode `json:"system,omitempty"`
	SysBatch *PreemptionMode `json:"sysbatch,omitempty"`
	Binding  *bool           `json:"binding,omitempty"`
}

// PreemptionMode is true, false, or observe: then decisions to evict are recorded, and
// nothing is evicted.
type PreemptionMode struct{ On, Observe bool }

// observeText is the text of the mode that only records decisions.
const observeText = "observe"

// MarshalJSON writes true, false or "observe".
func (m PreemptionMode) MarshalJSON() ([]byte, error) {
	if m.Observe {
		return json.Marshal(observeText)
	}
	return json.Marshal(m.On)
}

// PolicyVariant is a named configuration of a policy.
type PolicyVariant struct {
	Name   string         `json:"name"`
	Use    string         `json:"use"`
	Config map[string]any `json:"config,omitempty"`
	Grant  []string       `json:"grant,omitempty"`
}

// Namespace sets the weight of a tenant; the default is 1.
type Namespace struct {
	Name        string   `json:"name"`
	Weight      *float64 `json:"weight,omitempty"`
	Description string   `json:"description,omitempty"`
}

// PriorityClass is a named priority.
type PriorityClass struct {
	Name             string `json:"name"`
	Value            int32  `json:"value"`
	GlobalDefault    bool   `json:"globalDefault,omitempty"`
	PreemptionPolicy string `json:"preemptionPolicy,omitempty"`
	Description      string `json:"description,omitempty"`
}

// Quantities maps resource names to amounts in the units of model.Resources.
type Quantities map[string]int64

// Node is one node, or Count nodes with the ids ID-0, ID-1, and so on.
type Node struct {
	ID         string            `json:"id"`
	Count      *int              `json:"count,omitempty"`
	Datacenter string            `json:"datacenter,omitempty"`
	Class      string            `json:"class,omitempty"`
	Capacity   Quantities        `json:"capacity,omitempty"`
	Reserved   Quantities        `json:"reserved,omitempty"`
	Ports      []uint16          `json:"ports,omitempty"`
	Devices    []Device          `json:"devices,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Taints     []Taint           `json:"taints,omitempty"`
	Ready      *bool             `json:"ready,omitempty"`
}

// Device is a group of identical devices of a node.
type Device struct {
	ID         string            `json:"id"`
	Count      int32             `json:"count"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Taint repels groups that do not tolerate it.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Job is a unit of submission with one or more groups.
type Job struct {
	ID               string                `json:"id"`
	Namespace        string                `json:"namespace,omitempty"`
	Type             string                `json:"type,omitempty"`
	Priority         *int32                `json:"priority,omitempty"`
	PriorityClass    string                `json:"priorityClass,omitempty"`
	PreemptionPolicy string                `json:"preemptionPolicy,omitempty"`
	Preemptible      *bool                 `json:"preemptible,omitempty"`
	Toleration       *PreemptionToleration `json:"toleration,omitempty"`
	DisruptionMode   string                `json:"disruptionMode,omitempty"`
	AllAtOnce        bool                  `json:"allAtOnce,omitempty"`
	Datacenters      []string              `json:"datacenters,omitempty"`
	Policy           string                `json:"policy,omitempty"`
	Groups           []Group               `json:"groups,omitempty"`
}

// PreemptionToleration protects the allocations of a job from preemptors below a
// priority, or until a minimum run time has passed.
type PreemptionToleration struct {
	MinPreemptorPriority *int32   `json:"minPreemptorPriority,omitempty"`
	MinRuntime           Duration `json:"minRuntime,omitempty"`
}

// Group is a set of identical instances of a job.
type Group struct {
	Name                 string             `json:"name"`
	Count                *int               `json:"count,omitempty"`
	MinCount             int                `json:"minCount,omitempty"`
	Resources            Quantities         `json:"resources,omitempty"`
	Ports                []uint16           `json:"ports,omitempty"`
	Devices              []DeviceRequest    `json:"devices,omitempty"`
	Labels               map[string]string  `json:"labels,omitempty"`
	Tolerations          []Toleration       `json:"tolerations,omitempty"`
	Disconnect           *Disconnect        `json:"disconnect,omitempty"`
	Constraints          []Constraint       `json:"constraints,omitempty"`
	Affinities           []Affinity         `json:"affinities,omitempty"`
	Spread               []Spread           `json:"spread,omitempty"`
	Colocate             []LabelTerm        `json:"colocate,omitempty"`
	Separate             []LabelTerm        `json:"separate,omitempty"`
	MaxParallelEvictions *int               `json:"maxParallelEvictions,omitempty"`
	KillTimeout          Duration           `json:"killTimeout,omitempty"`
	Duration             Duration           `json:"duration,omitempty"`
	Checkpoint           Duration           `json:"checkpoint,omitempty"`
	Annotations          map[string]float64 `json:"annotations,omitempty"`
}

// Disconnect retains the instances of a group while their node is disconnected.
type Disconnect struct {
	LostAfter *Duration `json:"lostAfter,omitempty"`
	Replace   *bool     `json:"replace,omitempty"`
}

// Toleration admits a group to nodes with a matching taint.
type Toleration struct {
	Key      string   `json:"key,omitempty"`
	Operator string   `json:"operator,omitempty"`
	Value    string   `json:"value,omitempty"`
	Effect   string   `json:"effect,omitempty"`
	For      Duration `json:"for,omitempty"`
}

// DeviceRequest requests instances of one device group.
type DeviceRequest struct {
	ID          string       `json:"id"`
	Count       *int32       `json:"count,omitempty"`
	Constraints []Constraint `json:"constraints,omitempty"`
}

// Constraint is a hard requirement on nodes. Value may be written as a string, a
// number, a boolean or (for in and notin) a list; scalars are stored as text.
type Constraint struct {
	Attribute string   `json:"attribute,omitempty"`
	Operator  string   `json:"operator"`
	Value     string   `json:"value,omitempty"`
	Values    []string `json:"-"` // set if value is a list; replaces Value
}

// Affinity is a soft constraint with a weight from -100 to 100.
type Affinity struct {
	Constraint
	Weight int `json:"weight"`
}

// Spread distributes instances over the values of a node attribute.
type Spread struct {
	Attribute string         `json:"attribute"`
	Weight    *int           `json:"weight,omitempty"`
	Targets   map[string]int `json:"targets,omitempty"`
	MaxSkew   *int           `json:"maxSkew,omitempty"`
}

// LabelTerm selects allocations by labels within a topology domain.
type LabelTerm struct {
	Labels      map[string]string `json:"labels"`      // of allocations in the same namespace
	TopologyKey string            `json:"topologyKey"` // required: node, or an attribute of the nodes such as rack
}

// Budget is a disruption budget for the allocations that its labels select.
type Budget struct {
	Name           string            `json:"name"`
	Namespace      string            `json:"namespace,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	MinAvailable   *Bound            `json:"minAvailable,omitempty"`
	MaxUnavailable *Bound            `json:"maxUnavailable,omitempty"`
	MaxEvictions   *int32            `json:"maxEvictions,omitempty"`
	Window         Duration          `json:"window,omitempty"`
	Enforcement    string            `json:"enforcement,omitempty"`
}

// Bound is a number, or a percentage such as "50%".
type Bound struct {
	Number  int32
	Percent bool
}

// Cluster is a member cluster: one pool of capacity for bindings.
type Cluster struct {
	ID         string            `json:"id"`
	Capacity   Quantities        `json:"capacity,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Binding is a workload that is divided or duplicated over member clusters.
type Binding struct {
	ID                string         `json:"id"`
	Namespace         string         `json:"namespace,omitempty"`
	Scope             string         `json:"scope,omitempty"`
	Priority          *int32         `json:"priority,omitempty"`
	PriorityClass     string         `json:"priorityClass,omitempty"`
	ClassSource       string         `json:"priorityClassSource,omitempty"`
	PreemptionPolicy  string         `json:"preemptionPolicy,omitempty"`
	KillTimeout       Duration       `json:"killTimeout,omitempty"`
	Replicas          *int           `json:"replicas,omitempty"`
	MinReplicas       int            `json:"minReplicas,omitempty"`
	Resources         Quantities     `json:"resources,omitempty"`
	Clusters          []string       `json:"clusters,omitempty"`
	Weights           map[string]int `json:"weights,omitempty"`
	Constraints       []Constraint   `json:"constraints,omitempty"`
	ReplicaScheduling string         `json:"replicaScheduling,omitempty"`
	Spread            ClusterSpread  `json:"spread,omitzero"`
	Duration          Duration       `json:"duration,omitempty"`
	Checkpoint        Duration       `json:"checkpoint,omitempty"`
}

// ClusterSpread bounds the number of clusters of a binding, and the number of distinct
// values of one of their attributes.
type ClusterSpread struct {
	MinClusters *int   `json:"minClusters,omitempty"`
	MaxClusters *int   `json:"maxClusters,omitempty"`
	By          string `json:"by,omitempty"` // the attribute, such as region
	MinGroups   *int   `json:"minGroups,omitempty"`
	MaxGroups   *int   `json:"maxGroups,omitempty"`
}

// Running is an allocation, or replicas of a binding, that run before time 0.
type Running struct {
	ID        string         `json:"id"`
	Job       string         `json:"job,omitempty"`
	Group     string         `json:"group,omitempty"`
	Node      string         `json:"node,omitempty"`
	Binding   string         `json:"binding,omitempty"`
	Clusters  map[string]int `json:"clusters,omitempty"` // replicas
	StartedAt Duration       `json:"startedAt,omitempty"`
}

// Event is one event. Exactly one field besides At is set.
type Event struct {
	At       Duration `json:"at"`
	Submit   string   `json:"submit,omitempty"`
	Stop     string   `json:"stop,omitempty"`
	NodeDown string   `json:"nodeDown,omitempty"`
	NodeUp   string   `json:"nodeUp,omitempty"`
	Drain    string   `json:"drain,omitempty"`
}

// Expect is the expected result of a run. A nil list is not checked; an empty list
// requires that there are no entries.
type Expect struct {
	Placements *[]ExpectPlacement `json:"placements,omitempty"`
	Bindings   *[]ExpectBinding   `json:"bindings,omitempty"`
	Unplaced   *[]ExpectUnplaced  `json:"unplaced,omitempty"`
	Running    *[]string          `json:"running,omitempty"`
}

// ExpectPlacement matches a placement if all fields that are set match.
type ExpectPlacement struct {
	At        *Duration `json:"at,omitempty"`
	Alloc     *string   `json:"alloc,omitempty"`
	Job       *string   `json:"job,omitempty"`
	Group     *string   `json:"group,omitempty"`
	Node      *string   `json:"node,omitempty"`
	Preempted *[]string `json:"preempted,omitempty"`
	// PreemptedElsewhere maps nodes to preempted allocations and must match exactly.
	// Empty but not nil requires that there are none.
	PreemptedElsewhere map[string][]string `json:"preemptedElsewhere,omitzero"`
}

// ExpectBinding matches a binding of the result if all fields that are set match.
type ExpectBinding struct {
	At        *Duration       `json:"at,omitempty"`
	Binding   *string         `json:"binding,omitempty"`
	Clusters  *ExpectClusters `json:"clusters,omitempty"`
	Preempted *[]string       `json:"preempted,omitempty"`
}

// ExpectClusters is written as a list of clusters, or as a mapping from clusters to
// replicas. Both must match exactly.
type ExpectClusters struct {
	Names    []string
	Replicas map[string]int // if nil, Names is compared
}

// ExpectUnplaced matches an entry of the result's unplaced list.
type ExpectUnplaced struct {
	Job     *string `json:"job,omitempty"`
	Group   *string `json:"group,omitempty"`
	Binding *string `json:"binding,omitempty"`
	Count   *int    `json:"count,omitempty"`
}
