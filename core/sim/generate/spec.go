package generate

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Spec describes a scenario to generate. See the package documentation for the fields.
type Spec struct {
	Name        string      `yaml:"name"`
	Description string      `yaml:"description"`
	Seed        uint64      `yaml:"seed"`
	Horizon     Duration    `yaml:"horizon"`
	Until       Duration    `yaml:"until"` // 0 if the scenario has no end
	Nodes       []NodeShape `yaml:"nodes"`
	Bands       []Band      `yaml:"bands"`
	Classes     []Class     `yaml:"classes"`
	Failures    []Failure   `yaml:"failures"`

	file  string         // for messages
	lines map[string]int // line by path
}

// NodeShape describes a number of nodes of one kind.
type NodeShape struct {
	ID         string            `yaml:"id"`
	Count      *int              `yaml:"count"` // absent: 1
	Class      string            `yaml:"class"`
	Datacenter string            `yaml:"datacenter"`
	Capacity   map[string]Scalar `yaml:"capacity"`
	Jitter     int               `yaml:"jitter"`
	Attributes map[string]Values `yaml:"attributes"`
	Devices    []Device          `yaml:"devices"`
}

// Device is a device group of a node.
type Device struct {
	ID    string `yaml:"id"`
	Count int32  `yaml:"count"`
}

// Band is a priority and its offered load.
type Band struct {
	Name     string  `yaml:"name"`
	Priority int32   `yaml:"priority"`
	Load     float64 `yaml:"load"` // 0 if its classes determine it
}

// Class describes one kind of jobs.
type Class struct {
	Name        string            `yaml:"name"`
	Band        string            `yaml:"band"`
	Priority    *int32            `yaml:"priority"`
	Weight      *float64          `yaml:"weight"`
	Jobs        *int              `yaml:"jobs"`
	Type        string            `yaml:"type"`
	Namespace   string            `yaml:"namespace"`
	Arrival     Arrival           `yaml:"arrival"`
	Groups      int               `yaml:"groups"` // 0: 1
	Tasks       *Dist             `yaml:"tasks"`  // absent: 1
	Resources   map[string]*Dist  `yaml:"resources"`
	Devices     *DeviceRequest    `yaml:"devices"`
	Duration    *Dist             `yaml:"duration"` // unlimited if absent
	Checkpoint  Duration          `yaml:"checkpoint"`
	KillTimeout Duration          `yaml:"killTimeout"`
	Gang        bool              `yaml:"gang"`
	Preemptible *bool             `yaml:"preemptible"`
	Labels      map[string]string `yaml:"labels"`
	Placement   `yaml:",inline"`
}

// Placement describes where the tasks of a class may be placed.
type Placement struct {
	DistinctHosts bool         `yaml:"distinctHosts"`
	Colocate      string       `yaml:"colocate"` // attribute: each job stays within one of its values
	Spread        *Spread      `yaml:"spread"`
	Pin           *Choose      `yaml:"pin"`
	Prefer        *Choose      `yaml:"prefer"`
	Constraints   []Constraint `yaml:"constraints"`
}

// Arrival describes when the jobs of a class are submitted.
type Arrival struct {
	Process string     `yaml:"process"` // burst (default), poisson, every, at
	At      []Duration `yaml:"at"`
	Every   Duration   `yaml:"every"`
	PerHour float64    `yaml:"perHour"`
	From    Duration   `yaml:"from"`
	Until   Duration   `yaml:"until"` // 0: the horizon
}

// DeviceRequest is the request of each task for one kind of device.
type DeviceRequest struct {
	ID    string `yaml:"id"`
	Count *Dist  `yaml:"count"` // absent: 1
}

// Spread distributes a group's tasks over the values of an attribute.
type Spread struct {
	Attribute string `yaml:"attribute"`
	Weight    *int   `yaml:"weight"`
	MaxSkew   *int   `yaml:"maxSkew"`
}

// Choose constrains a share of the jobs to one value of an attribute, drawn from the
// values of the nodes.
type Choose struct {
	Attribute string `yaml:"attribute"`
	Share     int    `yaml:"share"`  // per cent of the jobs
	Weight    *int   `yaml:"weight"` // for prefer only
}

// Constraint is added to every group of the class.
type Constraint struct {
	Attribute string `yaml:"attribute"`
	Operator  string `yaml:"operator"`
	Value     Values `yaml:"value"`
}

// Failure fails nodes and optionally restores them.
type Failure struct {
	At    Duration          `yaml:"at"`
	Nodes Scalar            `yaml:"nodes"` // a number, or a percentage
	Where map[string]string `yaml:"where"` // attributes that the failing nodes must have
	Back  Duration          `yaml:"back"`  // 0: never
	Drain bool              `yaml:"drain"`
}

// Duration is a time in nanoseconds, written "1h30m" or in seconds.
type Duration int64

func (d Duration) String() string { return scenario.Duration(d).String() }

// UnmarshalYAML accepts both notations.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	var s Scalar
	if err := s.UnmarshalYAML(n); err != nil {
		return err
	}
	v, err := s.duration()
	if err != nil {
		return typeError(n, "%v", err)
	}
	*d = Duration(v)
	return nil
}

// Scalar is a value whose unit depends on its field.
type Scalar struct {
	text   string
	number bool // written without quotes and unit
}

func (s Scalar) String() string { return s.text }

// UnmarshalYAML stores the text. It returns an error if the value is not a scalar.
func (s *Scalar) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	tag := n.ShortTag()
	if n.Kind != yaml.ScalarNode || tag == "!!null" || tag == "!!bool" {
		return typeError(n, "expected one value, such as 500 or 2Gi")
	}
	*s = Scalar{text: n.Value, number: tag == "!!int" || tag == "!!float"}
	return nil
}

// Values is one value or a list of values, stored as text.
type Values struct {
	list   []string
	listed bool
}

// UnmarshalYAML accepts both forms.
func (v *Values) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items, v.listed = n.Content, true
	}
	v.list = nil
	for _, item := range items {
		if item.Kind != yaml.ScalarNode {
			return typeError(item, "expected a value or a list of values")
		}
		v.list = append(v.list, item.Value)
	}
	return nil
}

// typeError returns an error that the YAML decoder collects with its own.
func typeError(n *yaml.Node, format string, args ...any) error {
	return &yaml.TypeError{Errors: []string{"line " + strconv.Itoa(n.Line) + ": " + fmt.Sprintf(format, args...)}}
}
