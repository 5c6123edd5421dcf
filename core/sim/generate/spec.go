package generate

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Spec says what to generate. The package documentation explains the fields.
type Spec struct {
	Name        string      `yaml:"name"`
	Description string      `yaml:"description"`
	Seed        uint64      `yaml:"seed"`
	Horizon     Duration    `yaml:"horizon"`
	Until       Duration    `yaml:"until"` // 0: none
	Nodes       []NodeShape `yaml:"nodes"`
	Bands       []Band      `yaml:"bands"`
	Classes     []Class     `yaml:"classes"`
	Failures    []Failure   `yaml:"failures"`

	file  string         // for messages
	lines map[string]int // of the paths in it
}

// NodeShape is a number of nodes of one kind.
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

// Device is a group of devices of a node.
type Device struct {
	ID    string `yaml:"id"`
	Count int32  `yaml:"count"`
}

// Band is a priority with the load that it offers.
type Band struct {
	Name     string  `yaml:"name"`
	Priority int32   `yaml:"priority"`
	Load     float64 `yaml:"load"` // 0: what its classes say
}

// Class is a kind of work.
type Class struct {
	Name          string            `yaml:"name"`
	Band          string            `yaml:"band"`
	Priority      *int32            `yaml:"priority"`
	Weight        *float64          `yaml:"weight"`
	Jobs          *int              `yaml:"jobs"`
	Type          string            `yaml:"type"`
	Namespace     string            `yaml:"namespace"`
	Arrival       Arrival           `yaml:"arrival"`
	Groups        int               `yaml:"groups"` // 0: 1
	Tasks         *Dist             `yaml:"tasks"`  // absent: 1
	Resources     map[string]*Dist  `yaml:"resources"`
	Devices       *DeviceRequest    `yaml:"devices"`
	Duration      *Dist             `yaml:"duration"` // absent: for ever
	Checkpoint    Duration          `yaml:"checkpoint"`
	KillTimeout   Duration          `yaml:"killTimeout"`
	Gang          bool              `yaml:"gang"`
	Preemptible   *bool             `yaml:"preemptible"`
	Labels        map[string]string `yaml:"labels"`
	DistinctHosts bool              `yaml:"distinctHosts"`
	Spread        *Spread           `yaml:"spread"`
	Pin           *Choose           `yaml:"pin"`
	Prefer        *Choose           `yaml:"prefer"`
	Constraints   []Constraint      `yaml:"constraints"`
}

// Arrival says when a class's jobs are submitted.
type Arrival struct {
	Process string     `yaml:"process"` // burst (default), poisson, every, at
	At      []Duration `yaml:"at"`
	Every   Duration   `yaml:"every"`
	PerHour float64    `yaml:"perHour"`
	From    Duration   `yaml:"from"`
	Until   Duration   `yaml:"until"` // 0: the horizon
}

// DeviceRequest is what each task wants of one kind of device.
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

// Choose binds a share of the jobs to one value of an attribute, drawn from
// those that nodes have.
type Choose struct {
	Attribute string `yaml:"attribute"`
	Share     int    `yaml:"share"`  // per cent of the jobs
	Weight    *int   `yaml:"weight"` // of prefer alone
}

// Constraint is passed on to every group of the class.
type Constraint struct {
	Attribute string `yaml:"attribute"`
	Operator  string `yaml:"operator"`
	Value     Values `yaml:"value"`
}

// Failure takes nodes away, and gives them back.
type Failure struct {
	At    Duration          `yaml:"at"`
	Nodes Scalar            `yaml:"nodes"` // a number, or a percentage
	Where map[string]string `yaml:"where"` // attributes of the nodes to choose from
	Back  Duration          `yaml:"back"`  // 0: never
	Drain bool              `yaml:"drain"`
}

// Duration is a time in nanoseconds, written "1h30m" or in seconds.
type Duration int64

func (d Duration) String() string { return scenario.Duration(d).String() }

// UnmarshalYAML reads either notation.
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

// Scalar is a value whose unit depends on where it stands.
type Scalar struct {
	text   string
	number bool // written without quotes and unit
}

func (s Scalar) String() string { return s.text }

// UnmarshalYAML keeps the text.
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

// Values is one value or a list of them, kept as text.
type Values struct {
	list   []string
	listed bool
}

// UnmarshalYAML takes both.
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

// typeError is an error that the YAML decoder collects with its own.
func typeError(n *yaml.Node, format string, args ...any) error {
	return &yaml.TypeError{Errors: []string{"line " + strconv.Itoa(n.Line) + ": " + fmt.Sprintf(format, args...)}}
}
