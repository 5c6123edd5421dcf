package model

import (
	"fmt"
	"slices"
)

// An Ask is the request of one instance of a group, compiled so that Fits reads
// numbers only.
type Ask struct {
	Vec     Vector
	Dims    []uint8         // dimensions with a positive amount, ascending
	Ports   []uint16        // host ports, ascending
	Devices []DeviceRequest // each is served by one device group of the node
}

// A FreeCapacity describes the offer of a node to one requester: its capacity less live
// allocations, and less the claims of others at or above the requester's priority.
//
// Free is read with a stride, so that it can be a view into the columns of the
// state as well as into a Vector.
type FreeCapacity struct {
	Free    []int64  // Free[d*Stride] is free in dimension d; may be negative
	Stride  int      // 1 for a plain Vector
	Ports   []uint16 // host ports taken, ascending
	Devices []int32  // free instances by position in Node.Devices; may be negative
}

// NewFreeCapacity returns a view of a vector of free amounts, taken ports and free
// devices.
func NewFreeCapacity(free *Vector, ports []uint16, devices []int32) FreeCapacity {
	return FreeCapacity{Free: free[:], Stride: 1, Ports: ports, Devices: devices}
}

// ShortageKind is the kind of a Shortage.
type ShortageKind uint8

// The kinds of shortage. ShortageNone means that the request fits.
const (
	ShortageNone ShortageKind = iota
	ShortageResource
	ShortagePort
	ShortageDevice
)

// A Shortage is one reason why a request does not fit. The zero value means that it
// fits.
type Shortage struct {
	Kind    ShortageKind
	At      int   // dimension, host port, or position in Ask.Devices
	Missing int64 // missing amount in the unit of the dimension; 1 for a port
}

// Format returns the name of the missing resource, port or device for users.
func (l Shortage) Format(dims *Dimensions, ask *Ask) string {
	switch l.Kind {
	case ShortageResource:
		return dims.Name(l.At)
	case ShortagePort:
		return fmt.Sprintf("port %d", l.At)
	case ShortageDevice:
		return "device " + ask.Devices[l.At].ID
	default:
		return "nothing"
	}
}

// Fits reports whether an ask fits in the free capacity. choice names, for each
// device request, the position in Node.Devices that serves it; it is ignored if the
// ask has no devices. Fits returns the first shortage in the order resources,
// ports, devices, or the zero Shortage if the ask fits.
func Fits(room FreeCapacity, ask *Ask, choice []int16) Shortage {
	for _, d := range ask.Dims {
		if free := room.Free[int(d)*room.Stride]; free < ask.Vec[d] {
			return Shortage{Kind: ShortageResource, At: int(d), Missing: ask.Vec[d] - free}
		}
	}
	for _, p := range ask.Ports {
		if _, taken := slices.BinarySearch(room.Ports, p); taken {
			return Shortage{Kind: ShortagePort, At: int(p), Missing: 1}
		}
	}
	if len(ask.Devices) > 0 {
		return fitsDevices(room, ask, choice)
	}
	return Shortage{}
}

// fitsDevices sums what all requests use of one device group.
func fitsDevices(room FreeCapacity, ask *Ask, choice []int16) Shortage {
	for i := range ask.Devices {
		at := choice[i]
		if at < 0 || int(at) >= len(room.Devices) {
			return Shortage{Kind: ShortageDevice, At: i, Missing: int64(ask.Devices[i].Count)}
		}
		var taken int32
		for j := 0; j <= i; j++ {
			if choice[j] == at {
				taken += ask.Devices[j].Count
			}
		}
		if free := room.Devices[at]; free < taken {
			return Shortage{Kind: ShortageDevice, At: i, Missing: int64(taken - free)}
		}
	}
	return Shortage{}
}
