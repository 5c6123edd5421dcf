package dra

import (
	"strconv"

	"github.com/cede-scheduler/cede/core/model"
)

// Objects holds the objects of dynamic resource allocation that are related to devices.
type Objects struct {
	Slices    []*Slice
	Classes   []*Class
	Claims    []*Claim
	Templates []*Template
}

// IsEmpty reports whether there are no objects.
func (o *Objects) IsEmpty() bool {
	return len(o.Slices)+len(o.Classes)+len(o.Claims)+len(o.Templates) == 0
}

// Metadata identifies an object.
type Metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// Key returns the namespace and the name. The namespace is "default" if it is empty.
func (m *Metadata) Key() string { return Key(m.Namespace, m.Name) }

// Key returns the key of an object with a namespace.
func Key(namespace, name string) string {
	if namespace == "" {
		namespace = model.DefaultNamespace
	}
	return namespace + "/" + name
}

// A Slice is a ResourceSlice: devices of one pool.
type Slice struct {
	Metadata Metadata  `json:"metadata"`
	Spec     SliceSpec `json:"spec"`
}

// A SliceSpec is the spec of a slice.
type SliceSpec struct {
	Driver   string `json:"driver"`
	NodeName string `json:"nodeName"` // empty: the devices belong to several nodes
	Pool     struct {
		Name       string `json:"name"`
		Generation int64  `json:"generation"`
	} `json:"pool"`
	Devices        []Device     `json:"devices"`
	SharedCounters []CounterSet `json:"sharedCounters"`
}

// A Device is one device of a slice.
type Device struct {
	Name             string               `json:"name"`
	Attributes       map[string]Attribute `json:"attributes"`
	Capacity         map[string]Amount    `json:"capacity"`
	ConsumesCounters []CounterSetUse      `json:"consumesCounters"`
	Taints           []Taint              `json:"taints"`
	NodeName         string               `json:"nodeName"` // if the slice selects nodes for each device
	AllowMultiple    bool                 `json:"allowMultipleAllocations"`
}

// An Attribute is the value of an attribute of a device. Exactly one field is set.
type Attribute struct {
	Int     *int64  `json:"int"`
	Bool    *bool   `json:"bool"`
	String  *string `json:"string"`
	Version *string `json:"version"`
}

// An Amount is a quantity with unit, such as "40Gi".
type Amount struct {
	Value Quantity `json:"value"`
}

// A Quantity is the text of a Kubernetes quantity.
type Quantity string

// UnmarshalJSON accepts a string or a number.
func (q *Quantity) UnmarshalJSON(text []byte) error {
	s := string(text)
	if len(text) > 0 && text[0] == '"' {
		var err error
		if s, err = strconv.Unquote(s); err != nil {
			return err
		}
	}
	*q = Quantity(s)
	return nil
}

// amount returns the quantity in units, or false if it is invalid.
func (q Quantity) amount() (int64, bool) {
	n, err := model.ParseQuantity("", string(q))
	return n, err == nil
}

// A CounterSet holds the counters that partitions of one device share.
type CounterSet struct {
	Name     string            `json:"name"`
	Counters map[string]Amount `json:"counters"`
}

// A CounterSetUse is what a device consumes of a counter set.
type CounterSetUse struct {
	CounterSet string            `json:"counterSet"`
	Counters   map[string]Amount `json:"counters"`
}

// A Taint keeps requests without a toleration from a device.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// A Class is a DeviceClass.
type Class struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Selectors []Selector `json:"selectors"`
	} `json:"spec"`
}

// A Selector is an expression that selects devices.
type Selector struct {
	CEL struct {
		Expression string `json:"expression"`
	} `json:"cel"`
}

// A Claim is a ResourceClaim.
type Claim struct {
	Metadata Metadata  `json:"metadata"`
	Spec     ClaimSpec `json:"spec"`
	Status   struct {
		Allocation  *Allocation `json:"allocation"`
		ReservedFor []Consumer  `json:"reservedFor"`
	} `json:"status"`
}

// A Consumer is a pod or a group of pods that uses a claim.
type Consumer struct {
	Resource string `json:"resource"`
	Name     string `json:"name"`
}

// IsShared reports whether several pods use the claim, so that the eviction of one does
// not release its devices.
func (c *Claim) IsShared() bool {
	return len(c.Status.ReservedFor) > 1 || len(c.Status.ReservedFor) == 1 && c.Status.ReservedFor[0].Resource != "pods"
}

// A Template is a ResourceClaimTemplate.
type Template struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Spec ClaimSpec `json:"spec"`
	} `json:"spec"`
}

// A ClaimSpec is the spec of a claim.
type ClaimSpec struct {
	Devices struct {
		Requests    []Request  `json:"requests"`
		Constraints []struct{} `json:"constraints"`
	} `json:"devices"`
}

// A Request is a request of a claim.
type Request struct {
	Name           string         `json:"name"`
	Exactly        *ExactRequest  `json:"exactly"`
	FirstAvailable []ExactRequest `json:"firstAvailable"`
}

// An ExactRequest requests devices of one class.
type ExactRequest struct {
	Name           string     `json:"name"` // of an alternative
	Class          string     `json:"deviceClassName"`
	Selectors      []Selector `json:"selectors"`
	AllocationMode string     `json:"allocationMode"` // "" or ExactCount: Count devices; All: every device of the node
	Count          int64      `json:"count"`          // 0: 1
	AdminAccess    bool       `json:"adminAccess"`
	Tolerations    []struct{} `json:"tolerations"`
	Capacity       *struct{}  `json:"capacity"`
}

// An Allocation names the devices of a claim.
type Allocation struct {
	Devices struct {
		Results []Result `json:"results"`
	} `json:"devices"`
}

// A Result is one allocated device.
type Result struct {
	Request     string `json:"request"` // of an alternative: REQUEST/ALTERNATIVE
	Driver      string `json:"driver"`
	Pool        string `json:"pool"`
	Device      string `json:"device"`
	AdminAccess bool   `json:"adminAccess"`
}
