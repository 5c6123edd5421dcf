package model

import (
	"slices"
	"strings"
)

// A Device is one group of equal devices on a node.
type Device struct {
	ID         string // vendor/type/model
	Count      int32
	Attributes map[string]string
}

// A DeviceRequest requests instances of one device group.
type DeviceRequest struct {
	ID          string // type, vendor/type or vendor/type/model
	Count       int32
	Constraints []Constraint // over the device group's attributes
}

// Matches reports whether a device group can serve the request if no instance is in
// use.
func (r *DeviceRequest) Matches(d *Device) bool {
	if d.Count < r.Count || !r.matchesID(d.ID) {
		return false
	}
	for i := range r.Constraints {
		c := &r.Constraints[i]
		value, set := d.Attributes[c.Attribute]
		if !c.Holds(value, set) {
			return false
		}
	}
	return true
}

func (r *DeviceRequest) matchesID(id string) bool {
	want := strings.Split(r.ID, "/")
	have := strings.SplitN(id, "/", 3)
	switch len(want) {
	case 1:
		return len(have) >= 2 && want[0] == have[1]
	case 2:
		return len(have) >= 2 && want[0] == have[0] && want[1] == have[1]
	default:
		return r.ID == id
	}
}

// Equal reports whether two requests ask for the same devices.
func (r *DeviceRequest) Equal(other *DeviceRequest) bool {
	return r.ID == other.ID && r.Count == other.Count && slices.EqualFunc(r.Constraints, other.Constraints,
		func(a, b Constraint) bool { return a.String() == b.String() })
}

// maxDeviceChoices bounds the ways of serving one ask that are tried on one node. It
// exceeds the 70 ways in which half of eight equal devices can be chosen, for nodes on
// which each device is a group of its units.
const maxDeviceChoices = 128

// noChoice is the only way to serve an ask without devices.
var noChoice = [][]int16{nil}

// DeviceChoices returns the ways in which the node's device groups can serve the
// ask if no instance is in use: for each request a position in Devices, ordered by
// these positions. Adjacent equal requests have ascending positions, because the other
// orders are the same way. An ask without devices has one way, nil. If the result is
// empty, the node lacks the devices.
func (n *Node) DeviceChoices(ask *Ask) [][]int16 {
	if len(ask.Devices) == 0 {
		return noChoice
	}
	choices := [][]int16{{}}
	for r := range ask.Devices {
		request := &ask.Devices[r]
		repeats := r > 0 && request.Equal(&ask.Devices[r-1])
		var longer [][]int16
		for _, prefix := range choices {
			first := 0
			if repeats {
				first = int(prefix[r-1])
			}
			for at := first; at < len(n.Devices) && len(longer) < maxDeviceChoices; at++ {
				device := &n.Devices[at]
				if !request.Matches(device) || r > 0 && ask.devicesAt(prefix, int16(at)) > int64(device.Count-request.Count) {
					continue
				}
				longer = append(longer, append(slices.Clip(prefix), int16(at)))
			}
		}
		choices = longer
	}
	return choices
}

// devicesAt returns the number of instances that the first requests take of one group.
func (a *Ask) devicesAt(choice []int16, at int16) (taken int64) {
	for r, position := range choice {
		if position == at {
			taken += int64(a.Devices[r].Count)
		}
	}
	return taken
}
