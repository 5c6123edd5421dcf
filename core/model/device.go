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

// maxDeviceChoices bounds the ways of serving one ask that are tried on one node.
// Nodes have a handful of device groups, and asks one or two requests.
const maxDeviceChoices = 64

// noChoice is the only way to serve an ask without devices.
var noChoice = [][]int16{nil}

// DeviceChoices returns the ways in which the node's device groups can serve the
// ask if no instance is in use: for each request a position in Devices, ordered by
// these positions. An ask without devices has one way, nil. If the result is empty,
// the node lacks the devices.
func (n *Node) DeviceChoices(ask *Ask) [][]int16 {
	if len(ask.Devices) == 0 {
		return noChoice
	}
	choices := [][]int16{{}}
	for r := range ask.Devices {
		var longer [][]int16
		for _, prefix := range choices {
			for at := range n.Devices {
				if !ask.Devices[r].Matches(&n.Devices[at]) || len(longer) == maxDeviceChoices {
					continue
				}
				longer = append(longer, append(slices.Clip(prefix), int16(at)))
			}
		}
		choices = longer
	}
	return choices
}
