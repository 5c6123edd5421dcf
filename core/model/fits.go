package model

import (
	"fmt"
	"slices"
)

// Ask is what one instance of a group takes from a node, compiled from the
// group's own words so that Fits touches nothing but numbers.
type Ask struct {
	Vec     Vector
	Dims    []uint8         // dimensions with a positive amount, ascending
	Ports   []uint16        // host ports, ascending
	Devices []DeviceRequest // each is served by one device group of the node
}

// FreeCapacity is what a node offers to one asker: free amounts after everything that
// counts against the node has been taken off (live allocations, and claims of
// others at or above the asker's priority).
//
// Free is read with a stride so that a Room can be a view into the columns of
// the state as well as onto a plain Vector.
type FreeCapacity struct {
	Free    []int64  // Free[d*Stride] is free in dimension d; may be negative
	Stride  int      // 1 for a plain Vector
	Ports   []uint16 // host ports taken, ascending
	Devices []int32  // free instances by position in Node.Devices; may be negative
}

// NewFreeCapacity views a vector of free amounts, taken ports and free devices as Room.
func NewFreeCapacity(free *Vector, ports []uint16, devices []int32) FreeCapacity {
	return FreeCapacity{Free: free[:], Stride: 1, Ports: ports, Devices: devices}
}

// ShortageKind says what kind of thing a node is short of.
type ShortageKind uint8

// The kinds of lack, LackNothing meaning that the ask fits.
const (
	ShortageNone ShortageKind = iota
	ShortageResource
	ShortagePort
	ShortageDevice
)

// Shortage is one thing that keeps an ask from fitting. The zero value means that
// nothing does.
type Shortage struct {
	Kind    ShortageKind
	At      int   // dimension, host port, or position in Ask.Devices
	Missing int64 // how much is missing, in the dimension's unit; 1 for a port
}

// Format names the lack for people, with the names of dims and ask.
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

// Fits is the one test of whether an ask fits in a room. choice names, for
// each device request, the position in Node.Devices that shall serve it; it is
// ignored when the ask has no devices. The first lack found is returned, in
// the order resources, ports, devices; the zero Lack means that it fits.
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

// fitsDevices counts what all requests take from one device group together.
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
