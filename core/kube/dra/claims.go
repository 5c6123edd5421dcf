package dra

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
)

// attributePrefix and a definition form the attribute of the device groups that the
// definition selects. Its value is the number of units that one device consumes.
const attributePrefix = "cede.import/devices "

// differs is the value of the attribute if the devices consume different numbers of units.
const differs = "several"

func attribute(definition string) string { return attributePrefix + definition }

// A definition is a set of devices: those that a class and the selectors of a request
// select.
type definition struct {
	selectors []*expression
	err       error // a selector is not supported, or the class is missing
}

func (d *definition) selects(device map[string]any) bool {
	return d.err == nil && !slices.ContainsFunc(d.selectors, func(e *expression) bool { return !e.selects(device) })
}

// add adds selectors.
func (d *definition) add(list []Selector) {
	for _, s := range list {
		e, err := parse(s.CEL.Expression)
		if err == nil {
			err = e.check()
		}
		if err != nil && d.err == nil {
			d.err = err
		}
		d.selectors = append(d.selectors, e)
	}
}

// definition returns the text that identifies the definition of a request.
func (r *ExactRequest) definition() string {
	var text strings.Builder
	text.WriteString(r.Class)
	for _, s := range r.Selectors {
		text.WriteString(" && " + strings.Join(strings.Fields(s.CEL.Expression), " "))
	}
	return text.String()
}

// alternatives returns the requests of which one must be satisfied.
func (r *Request) alternatives() []ExactRequest {
	if r.Exactly != nil {
		return []ExactRequest{*r.Exactly}
	}
	return r.FirstAvailable
}

// definitionsOf returns the definitions of all classes, claims and templates.
func definitionsOf(o *Objects) map[string]*definition {
	classes, list := map[string]*Class{}, map[string]*definition{}
	for _, c := range o.Classes {
		classes[c.Metadata.Name] = c
		d := &definition{}
		d.add(c.Spec.Selectors)
		list[c.Metadata.Name] = d
	}
	add := func(s *ClaimSpec) {
		for i := range s.Devices.Requests {
			for _, r := range s.Devices.Requests[i].alternatives() {
				name := r.definition()
				if list[name] != nil {
					continue
				}
				d := &definition{}
				list[name] = d
				if class := classes[r.Class]; class != nil {
					d.add(class.Spec.Selectors)
				} else {
					d.err = fmt.Errorf("device class %.60q is missing", r.Class)
				}
				d.add(r.Selectors)
			}
		}
	}
	for _, c := range o.Claims {
		add(&c.Spec)
	}
	for _, t := range o.Templates {
		add(&t.Spec.Spec)
	}
	return list
}

// An Index holds how each definition is requested, derived from the device groups of
// nodes. It works with the nodes of a scenario too, which has no other trace of classes.
type Index map[string]Mark

// A Mark is how one definition is requested.
type Mark struct {
	Partition bool  // from the units of a partitioned device
	Units     int32 // of each device
	// Ambiguous is set if nodes have devices of both kinds, or with different units.
	Ambiguous bool
}

// Add adds the definitions of a device group.
func (x Index) Add(d *model.Device) {
	for name, value := range d.Attributes {
		definition, ok := strings.CutPrefix(name, attributePrefix)
		if !ok {
			continue
		}
		units, err := strconv.ParseInt(value, 10, 32)
		mark := Mark{Partition: strings.Split(d.ID, "/")[1] == typePartition, Units: int32(units), Ambiguous: err != nil}
		if other, known := x[definition]; known && other != mark {
			mark.Ambiguous = true
		}
		x[definition] = mark
	}
}

// A Finding is a part of a claim that the model cannot express.
type Finding struct{ Subject, Handling string }

// Requests returns the device requests of a claim, and the parts that they do not express. v may
// be nil, if only the nodes of a scenario are known.
func (x Index) Requests(s *ClaimSpec, v *Inventory) (list []model.DeviceRequest, findings []Finding) {
	for i := range s.Devices.Requests {
		all := s.Devices.Requests[i].alternatives()
		if len(all) == 0 {
			findings = append(findings, Finding{"device requests of an unknown form", "left out"})
			continue
		}
		if len(all) > 1 {
			findings = append(findings, Finding{"device requests with alternatives", "the first alternative counts"})
		}
		requests, found := x.requests(&all[0], v)
		list, findings = append(list, requests...), append(findings, found...)
	}
	if len(s.Devices.Constraints) > 0 {
		findings = append(findings, Finding{"claims with constraints between devices", "constraints left out"})
	}
	return list, findings
}

// requests returns the device requests of one request.
func (x Index) requests(r *ExactRequest, v *Inventory) (list []model.DeviceRequest, findings []Finding) {
	name := r.definition()
	mark, known := x[name]
	if v != nil && v.definitions[name] != nil {
		known = known || v.definitions[name].err == nil
	}
	switch {
	case r.AdminAccess:
		return nil, nil // consumes no devices
	case !known:
		return nil, []Finding{{"device requests with unsupported selectors, or of an unknown class", "left out"}}
	case mark.Ambiguous:
		return nil, []Finding{{"device requests that partitions of several sizes satisfy", "left out"}}
	case r.AllocationMode == "All":
		return nil, []Finding{{"device requests for all devices of a node", "left out"}}
	}
	if r.Capacity != nil {
		findings = append(findings, Finding{"device requests for a part of a shared device", "counted as a whole device"})
	}
	if len(r.Tolerations) > 0 {
		findings = append(findings, Finding{"device requests with tolerations of device taints", "devices with taints are left out"})
	}
	one := model.DeviceRequest{ID: typeDevice, Count: int32(min(max(r.Count, 1), 1<<20)), Constraints: []model.Constraint{{Attribute: attribute(name), Operator: model.OpIsSet}}}
	if !mark.Partition {
		return []model.DeviceRequest{one}, findings
	}
	devices := one.Count
	one.ID, one.Count = typePartition, mark.Units
	for range min(devices, fieldcheck.MaxRequests+1) { // each from any device of the node
		list = append(list, one)
	}
	return list, findings
}

// Uses returns the groups of the devices that a claim has on a node, in the order of the
// requests that Requests returns for it. It returns false if the claim has no devices
// yet, or if they do not correspond to the requests.
func (v *Inventory) Uses(c *Claim, requests []model.DeviceRequest) ([]model.DeviceUse, bool) {
	if c.Status.Allocation == nil {
		return nil, false
	}
	var uses []model.DeviceUse
	results := slices.DeleteFunc(slices.Clone(c.Status.Allocation.Devices.Results), func(r Result) bool { return r.AdminAccess })
	for len(results) > 0 && len(uses) < len(requests) {
		request := &requests[len(uses)]
		one := v.places[[3]string{results[0].Driver, results[0].Pool, results[0].Device}]
		devices := 1
		if request.ID == typeDevice {
			devices = int(request.Count)
		}
		if one.group == "" || len(results) < devices || request.ID == typePartition && one.units != request.Count {
			return nil, false
		}
		for _, r := range results[:devices] {
			if v.places[[3]string{r.Driver, r.Pool, r.Device}] != one {
				return nil, false
			}
		}
		uses, results = append(uses, model.DeviceUse{ID: one.group, Count: request.Count}), results[devices:]
	}
	return uses, len(results) == 0 && len(uses) == len(requests)
}
