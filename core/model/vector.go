package model

import (
	"errors"
	"fmt"
	"slices"
)

// MaxDimensions is the number of resource names that one cluster may use.
const MaxDimensions = 16

// Dimensions that every cluster has, in this order. Other names follow in the
// order in which the cluster first saw them.
const (
	CPU     = iota // millicores
	Memory         // MiB
	Disk           // MiB
	Network        // Mbit/s
	firstOther
)

// ErrTooManyDimensions means a cluster would need more than MaxDimensions
// resource names.
var ErrTooManyDimensions = errors.New("more than 16 resource names in one cluster")

// Vector holds an amount per dimension, in the units of Resources.
type Vector [MaxDimensions]int64

// Dimensions names the positions of a Vector. It is immutable and only ever
// grows: With returns a longer one in which every old position keeps its
// meaning, so vectors made earlier stay valid.
type Dimensions struct{ names []string }

// NewDimensions returns the dimensions that every cluster has: cpu, memory,
// disk and network.
func NewDimensions() *Dimensions {
	return &Dimensions{names: []string{"cpu", "memory", "disk", "network"}}
}

// Len returns the number of dimensions in use.
func (d *Dimensions) Len() int { return len(d.names) }

// Name returns the resource name at position i.
func (d *Dimensions) Name(i int) string { return d.names[i] }

// Names returns a copy of all names in order.
func (d *Dimensions) Names() []string { return slices.Clone(d.names) }

// AppendNames appends all names in order.
func (d *Dimensions) AppendNames(to []string) []string { return append(to, d.names...) }

// Index returns the position of name, or -1 if the cluster does not use it.
func (d *Dimensions) Index(name string) int { return slices.Index(d.names, name) }

// With returns dimensions that also contain every name of rs, or d itself if it
// already does. Unknown names are added in ascending order, so the result does not
// depend on map order. It returns ErrTooManyDimensions if there would be too many.
func (d *Dimensions) With(rs ...Resources) (*Dimensions, error) {
	var missing []string
	for _, r := range rs {
		for name := range r {
			if d.Index(name) < 0 && !slices.Contains(missing, name) {
				missing = append(missing, name)
			}
		}
	}
	if len(missing) == 0 {
		return d, nil
	}
	slices.Sort(missing)
	if len(d.names)+len(missing) > MaxDimensions {
		return nil, fmt.Errorf("%w: %d in use, cannot add %v", ErrTooManyDimensions, len(d.names), missing)
	}
	return &Dimensions{names: append(slices.Clone(d.names), missing...)}, nil
}

// Vector returns r by dimension. It panics if d lacks a name: the caller must have
// called With first.
func (d *Dimensions) Vector(r Resources) Vector {
	var v Vector
	for name, amount := range r {
		i := d.Index(name)
		if i < 0 {
			panic("model: resource " + name + " is not among the dimensions")
		}
		v[i] = amount
	}
	return v
}

// Resources returns v by name, without zeros.
func (d *Dimensions) Resources(v *Vector) Resources {
	r := Resources{}
	for i, name := range d.names {
		if v[i] != 0 {
			r[name] = v[i]
		}
	}
	return r
}

// Add adds o to v in place.
func (v *Vector) Add(o *Vector) {
	for i := range v {
		v[i] += o[i]
	}
}

// Sub subtracts o from v in place.
func (v *Vector) Sub(o *Vector) {
	for i := range v {
		v[i] -= o[i]
	}
}

// Resources maps a resource name to an amount: cpu in millicores, memory and
// disk in MiB, network in Mbit/s, any other name in whole units.
type Resources map[string]int64
