package generate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// class is a resolved Class.
type class struct {
	*Class
	path      string
	priority  int32
	band      int // position of the band, or -1
	times     arrivals
	resources []resourceRequest
	tasks     *drawer
	devices   *drawer
	duration  *drawer // nil if unlimited
}

// resourceRequest is the amount of a resource that each task requests.
type resourceRequest struct {
	name string
	*drawer
}

// planClass resolves one class.
func (p *plan) planClass(i int, seen map[string]bool) {
	c := &p.spec.Classes[i]
	k := class{Class: c, path: fmt.Sprintf("classes[%d]", i), band: -1, priority: model.DefaultPriority}
	p.name(k.path+".name", c.Name, seen)
	p.planPriority(&k)
	if _, err := model.ParseJobType(orDefault(c.Type, "batch")); err != nil {
		p.bad(k.path+".type", err.Error(), "omit it for batch")
	}
	if c.Namespace != "" {
		p.name(k.path+".namespace", c.Namespace, nil)
	}
	if c.Groups < 0 || c.Groups > maxGroups {
		p.badf(k.path+".groups", "omit it for 1", "%d groups; expected 1 to %d", c.Groups, maxGroups)
	}
	p.planSizes(&k)
	p.planPlacement(&k)
	k.times = p.planArrival(&k)
	if k.times.number == byLoad && len(k.Resources) == 0 && k.Devices == nil {
		p.bad(k.path, "the class requests nothing, so it offers no load", "add resources, or a number of jobs")
	}
	p.classes = append(p.classes, k)
}

// orDefault returns s, or otherwise if s is empty.
func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func (p *plan) planPriority(k *class) {
	if k.Priority != nil {
		k.priority = *k.Priority
		if k.Band != "" {
			p.bad(k.path+".band", "band and priority are mutually exclusive", "remove one of them")
		}
		return
	}
	if k.Band == "" {
		return
	}
	k.band = slices.IndexFunc(p.spec.Bands, func(b Band) bool { return b.Name == k.Band })
	if k.band < 0 {
		p.badf(k.path+".band", "add it to bands", "unknown band %.60q", k.Band)
		return
	}
	k.priority = p.spec.Bands[k.band].Priority
}

// perNode reports whether the jobs of the class run once on every node.
func (k *class) perNode() bool { return k.Type == "system" || k.Type == "sysbatch" }

func (p *plan) planSizes(k *class) {
	k.tasks = p.drawer(k.path+".tasks", orOne(k.Tasks), Scalar.count, 1, 1)
	if k.perNode() && k.Tasks != nil {
		p.bad(k.path+".tasks", "a "+k.Type+" job runs once on every node", "remove the line")
	}
	for _, r := range slices.Sorted(maps.Keys(k.Resources)) {
		path := k.path + ".resources." + r
		if k.Resources[r] == nil {
			p.bad(path, "amount is missing", "write one, such as 500 or 2Gi")
			continue
		}
		if p.capacity[r] == 0 {
			p.badf(path, "add it to the capacity of some nodes", "no node has %s", r)
		}
		k.resources = append(k.resources, resourceRequest{r, p.drawer(path, k.Resources[r], amount(r, model.ParseQuantity), 0, 1)})
	}
	if d := k.Devices; d != nil {
		k.devices = p.drawer(k.path+".devices.count", orOne(d.Count), Scalar.count, 1, 1)
		if p.countDevices(d.ID) == 0 {
			p.badf(k.path+".devices.id", "add them to some nodes", "no node has devices %.60q", d.ID)
		}
	}
	if k.Duration != nil {
		k.duration = p.drawer(k.path+".duration", k.Duration, Scalar.duration, 1, 1_000_000)
		if k.Type == "service" || k.Type == "system" {
			p.bad(k.path+".duration", "a "+k.Type+" job never ends", "remove the duration, or make it batch or sysbatch")
		}
		if d := k.duration; d != nil && d.lo >= 1e9 && k.Duration.step == nil {
			d.step = 1e9 // seconds are more readable than 17m3.289s
		}
	}
	if k.Checkpoint != 0 && k.Duration == nil {
		p.bad(k.path+".checkpoint", "checkpoint requires a duration", "add a duration")
	}
}

func orOne(d *Dist) *Dist {
	if d == nil {
		return &Dist{values: []Scalar{{text: "1", number: true}}}
	}
	return d
}

func (p *plan) drawer(path string, d *Dist, read func(Scalar) (int64, error), least, step int64) *drawer {
	out, err := d.compile(read, least, step)
	if err != nil {
		p.bad(path, err.Error(), "write a value, or a distribution as in the presets")
	}
	return out
}

// countDevices returns the number of devices of all nodes that match an id of the form
// type, vendor/type or vendor/type/model.
func (p *plan) countDevices(id string) (n float64) {
	for i := range p.shapes {
		for _, d := range p.shapes[i].Devices {
			if deviceMatches(id, d.ID) {
				n += float64(d.Count) * float64(p.shapes[i].count)
			}
		}
	}
	return n
}

func deviceMatches(id, device string) bool {
	_, rest, _ := strings.Cut(device, "/")
	kind, _, _ := strings.Cut(rest, "/")
	return id != "" && (id == kind || id == device || strings.HasPrefix(device, id+"/") && strings.Contains(id, "/"))
}

func (p *plan) planPlacement(k *class) {
	attribute := func(path, name string) {
		if len(p.values[name]) == 0 {
			p.badf(path+".attribute", "add it to some nodes", "no node has the attribute %.60q", name)
		}
	}
	weight := func(path string, w *int, least int) {
		if w != nil && (*w < least || *w > 100) {
			p.badf(path+".weight", "omit it for 50", "%d; expected %d to 100", *w, least)
		}
	}
	share := func(path string, c *Choose) {
		attribute(path, c.Attribute)
		if c.Share < 0 || c.Share > 100 {
			p.badf(path+".share", "write per cent", "%d; expected 0 to 100", c.Share)
		}
	}
	if k.Colocate != "" {
		attribute(k.path+".colocate", k.Colocate)
	}
	if s := k.Spread; s != nil {
		attribute(k.path+".spread", s.Attribute)
		weight(k.path+".spread", s.Weight, 1)
		if s.MaxSkew != nil && *s.MaxSkew < 1 {
			p.badf(k.path+".spread.maxSkew", "omit it for a soft spread", "%d; expected 1 or more", *s.MaxSkew)
		}
	}
	if k.Pin != nil {
		share(k.path+".pin", k.Pin)
		if k.Pin.Weight != nil {
			p.bad(k.path+".pin.weight", "a pin has no weight", "use prefer for a soft constraint")
		}
	}
	if k.Prefer != nil {
		share(k.path+".prefer", k.Prefer)
		weight(k.path+".prefer", k.Prefer.Weight, -100)
	}
	for i, c := range k.Constraints {
		if !model.Operator(c.Operator).Valid() {
			p.badf(fmt.Sprintf("%s.constraints[%d].operator", k.path, i), "write one of = != < <= > >= in notin regexp version is_set is_not_set",
				"unknown operator %.40q", c.Operator)
		}
	}
}
