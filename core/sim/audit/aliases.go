package audit

import (
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/timeline"
)

type (
	constraint    = scenario.Constraint
	deviceRequest = scenario.DeviceRequest
	deviceSpec    = scenario.Device
	labelTerm     = scenario.LabelTerm
	taint         = scenario.Taint
	toleration    = scenario.Toleration
)

func deviceUse(id string, count int32) timeline.Device { return timeline.Device{ID: id, Count: count} }
