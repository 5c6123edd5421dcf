package generate

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Bounds on what a spec may ask for: beyond the largest clusters there are,
// and before memory is a worry.
const (
	maxSpecNodes = 1_000_000
	maxJobs      = 500_000
	maxTasks     = 10_000_000
	maxGroups    = 1000
)

var namePattern = regexp.MustCompile(`^[a-z0-9.-]+$`)

// plan is a spec with everything resolved and nothing drawn.
type plan struct {
	spec     *Spec
	problems []scenario.Problem

	shapes   []shape
	nodes    int                 // in all
	capacity map[string]float64  // in all, before jitter
	values   map[string][]string // that attributes have on nodes, ascending
	classes  []class
}

// shape is a resolved NodeShape.
type shape struct {
	*NodeShape
	count    int
	capacity scenario.Quantities
}

// class is a resolved Class.
type class struct {
	*Class
	path      string
	priority  int32
	band      int // position, or -1
	times     times
	resources []asked
	tasks     *drawer
	devices   *drawer
	duration  *drawer // nil: for ever
}

// asked is an amount of a resource that each task asks for.
type asked struct {
	name string
	*drawer
}

// Validate reports every problem at once, as a *scenario.Error.
func (s *Spec) Validate() error {
	return newPlan(s).err()
}

func (p *plan) err() error {
	if len(p.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(p.problems, func(a, b scenario.Problem) int { return a.Line - b.Line })
	return &scenario.Error{File: p.spec.file, Problems: p.problems}
}

// bad notes a problem at a path of the spec.
func (p *plan) bad(path, message, remedy string) {
	p.problems = append(p.problems, scenario.Problem{
		Line: p.spec.line(path), Path: path, Message: message, Remedy: remedy,
	})
}

func (p *plan) badf(path, remedy, format string, args ...any) {
	p.bad(path, fmt.Sprintf(format, args...), remedy)
}

func newPlan(s *Spec) *plan {
	p := &plan{spec: s, capacity: make(map[string]float64), values: make(map[string][]string)}
	p.name("name", s.Name, nil)
	if s.Horizon <= 0 {
		p.bad("horizon", "no horizon", "say how long work arrives, such as 2h")
	}
	if s.Until != 0 && s.Until < s.Horizon {
		p.badf("until", "end later, or shorten the horizon", "%v is before the horizon (%v)", s.Until, s.Horizon)
	}
	p.planNodes()
	p.planBands()
	seen := make(map[string]bool)
	if len(s.Classes) == 0 {
		p.bad("classes", "no classes", "describe some work")
	}
	for i := range s.Classes {
		p.planClass(i, seen)
	}
	for i := range s.Failures {
		p.planFailure(i)
	}
	return p
}

// name checks a name that must be there, and unique when seen is given.
func (p *plan) name(path, name string, seen map[string]bool) {
	switch {
	case !namePattern.MatchString(name):
		p.badf(path, "use lower-case letters, digits, dots and dashes", "%.60q is not a name", name)
	case seen[name]:
		p.badf(path, "choose another", "the name %q is taken", name)
	case seen != nil:
		seen[name] = true
	}
}

func (p *plan) planNodes() {
	if len(p.spec.Nodes) == 0 {
		p.bad("nodes", "no nodes", "describe at least one kind")
	}
	seen := make(map[string]bool)
	for i := range p.spec.Nodes {
		n := &p.spec.Nodes[i]
		path := fmt.Sprintf("nodes[%d]", i)
		p.name(path+".id", n.ID, seen)
		s := shape{NodeShape: n, count: 1, capacity: make(scenario.Quantities)}
		if n.Count != nil {
			s.count = *n.Count
		}
		if s.count < 0 || s.count > maxSpecNodes-p.nodes {
			p.badf(path+".count", "describe fewer", "%d nodes; expected 0 to %d in all", s.count, maxSpecNodes)
			s.count = 0
		}
		if n.Jitter < 0 || n.Jitter > 90 {
			p.badf(path+".jitter", "write per cent", "%d; expected 0 to 90", n.Jitter)
		}
		p.nodes += s.count
		for _, r := range slices.Sorted(maps.Keys(n.Capacity)) {
			v, err := amount(r, model.ParseCapacity)(n.Capacity[r])
			if err != nil {
				p.bad(path+".capacity."+r, err.Error(), "write an amount, such as 4000 or 8Gi")
			}
			s.capacity[r] = v
			p.capacity[r] += float64(v) * float64(s.count)
		}
		p.planDevices(path, n)
		p.planAttributes(path, n)
		p.shapes = append(p.shapes, s)
	}
}

func (p *plan) planDevices(path string, n *NodeShape) {
	for j, d := range n.Devices {
		if strings.Count(d.ID, "/") != 2 || d.Count < 1 {
			p.badf(fmt.Sprintf("%s.devices[%d]", path, j), "write {id: nvidia/gpu/a100, count: 8}",
				"%.60q × %d; expected vendor/type/model, and 1 or more", d.ID, d.Count)
		}
	}
}

func (p *plan) planAttributes(path string, n *NodeShape) {
	for _, a := range slices.Sorted(maps.Keys(n.Attributes)) {
		if len(n.Attributes[a].list) == 0 {
			p.bad(path+".attributes."+a, "no value", "write one, or a list that is dealt in turn")
		}
		for _, v := range n.Attributes[a].list {
			if !slices.Contains(p.values[a], v) {
				p.values[a] = append(p.values[a], v)
			}
		}
		slices.Sort(p.values[a])
	}
}

func (p *plan) planBands() {
	seen := make(map[string]bool)
	for i := range p.spec.Bands {
		b := &p.spec.Bands[i]
		path := fmt.Sprintf("bands[%d]", i)
		p.name(path+".name", b.Name, seen)
		if !(b.Load >= 0 && b.Load <= 100) {
			p.badf(path+".load", "1 is the whole cluster", "%v; expected 0 to 100", b.Load)
		}
	}
}

func (p *plan) planClass(i int, seen map[string]bool) {
	c := &p.spec.Classes[i]
	k := class{Class: c, path: fmt.Sprintf("classes[%d]", i), band: -1, priority: model.DefaultPriority}
	p.name(k.path+".name", c.Name, seen)
	p.planPriority(&k)
	if _, err := model.ParseJobType(orDefault(c.Type, "batch")); err != nil {
		p.bad(k.path+".type", err.Error(), "leave it out for batch")
	}
	if c.Namespace != "" {
		p.name(k.path+".namespace", c.Namespace, nil)
	}
	if c.Groups < 0 || c.Groups > maxGroups {
		p.badf(k.path+".groups", "leave it out for 1", "%d groups; expected 1 to %d", c.Groups, maxGroups)
	}
	p.planSizes(&k)
	p.planPlacement(&k)
	k.times = p.planArrival(&k)
	if k.times.number == byLoad && len(k.Resources) == 0 && k.Devices == nil {
		p.bad(k.path, "it asks for nothing, so it offers no load", "give it resources, or say how many jobs")
	}
	p.classes = append(p.classes, k)
}

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
			p.bad(k.path+".band", "band and priority exclude each other", "remove one of them")
		}
		return
	}
	if k.Band == "" {
		return
	}
	k.band = slices.IndexFunc(p.spec.Bands, func(b Band) bool { return b.Name == k.Band })
	if k.band < 0 {
		p.badf(k.path+".band", "add it to bands", "no band is called %.60q", k.Band)
		return
	}
	k.priority = p.spec.Bands[k.band].Priority
}

// perNode is whether the class's jobs run once on every node.
func (k *class) perNode() bool { return k.Type == "system" || k.Type == "sysbatch" }

func (p *plan) planSizes(k *class) {
	k.tasks = p.drawer(k.path+".tasks", orOne(k.Tasks), Scalar.count, 1, 1)
	if k.perNode() && k.Tasks != nil {
		p.bad(k.path+".tasks", "a "+k.Type+" job runs once on every node", "remove the line")
	}
	for _, r := range slices.Sorted(maps.Keys(k.Resources)) {
		path := k.path + ".resources." + r
		if k.Resources[r] == nil {
			p.bad(path, "no amount", "write one, such as 500 or 2Gi")
			continue
		}
		if p.capacity[r] == 0 {
			p.badf(path, "add it to the capacity of some nodes", "no node has %s", r)
		}
		k.resources = append(k.resources, asked{r, p.drawer(path, k.Resources[r], amount(r, model.ParseQuantity), 0, 1)})
	}
	if d := k.Devices; d != nil {
		k.devices = p.drawer(k.path+".devices.count", orOne(d.Count), Scalar.count, 1, 1)
		if p.countDevices(d.ID) == 0 {
			p.badf(k.path+".devices.id", "add them to some nodes", "no node has devices called %.60q", d.ID)
		}
	}
	if k.Duration != nil {
		k.duration = p.drawer(k.path+".duration", k.Duration, Scalar.duration, 1, 1_000_000)
		if k.Type == "service" || k.Type == "system" {
			p.bad(k.path+".duration", "a "+k.Type+" job never ends", "remove the duration, or make it batch or sysbatch")
		}
		if d := k.duration; d != nil && d.lo >= 1e9 && k.Duration.step == nil {
			d.step = 1e9 // nobody wants to read 17m3.289s
		}
	}
	if k.Checkpoint != 0 && k.Duration == nil {
		p.bad(k.path+".checkpoint", "checkpoints of work without a duration", "give it a duration")
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
		p.bad(path, err.Error(), "write a value, or a distribution as the presets have them")
	}
	return out
}

// countDevices is how many devices of all nodes answer to an id: type,
// vendor/type or vendor/type/model.
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
			p.badf(path+".attribute", "give it to some nodes", "no node has the attribute %.60q", name)
		}
	}
	weight := func(path string, w *int, least int) {
		if w != nil && (*w < least || *w > 100) {
			p.badf(path+".weight", "leave it out for 50", "%d; expected %d to 100", *w, least)
		}
	}
	share := func(path string, c *Choose) {
		attribute(path, c.Attribute)
		if c.Share < 0 || c.Share > 100 {
			p.badf(path+".share", "write per cent", "%d; expected 0 to 100", c.Share)
		}
	}
	if s := k.Spread; s != nil {
		attribute(k.path+".spread", s.Attribute)
		weight(k.path+".spread", s.Weight, 1)
		if s.MaxSkew != nil && *s.MaxSkew < 1 {
			p.badf(k.path+".spread.maxSkew", "leave it out for a soft spread", "%d; expected 1 or more", *s.MaxSkew)
		}
	}
	if k.Pin != nil {
		share(k.path+".pin", k.Pin)
		if k.Pin.Weight != nil {
			p.bad(k.path+".pin.weight", "a pin is hard", "use prefer for wishes")
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

func (p *plan) planFailure(i int) {
	f := &p.spec.Failures[i]
	path := fmt.Sprintf("failures[%d]", i)
	if _, err := f.share(p.nodes); err != nil {
		p.bad(path+".nodes", err.Error(), "write a number of nodes, or a share such as 10%")
	}
	for _, a := range slices.Sorted(maps.Keys(f.Where)) {
		if !slices.Contains(p.values[a], f.Where[a]) {
			p.badf(path+".where."+a, "choose a value that some node has", "no node has %s = %.60s", a, f.Where[a])
		}
	}
}

// share is how many of n nodes fail.
func (f *Failure) share(n int) (int, error) {
	text, percent := strings.CutSuffix(f.Nodes.text, "%")
	v, err := Scalar{text: text, number: true}.count()
	switch {
	case err != nil:
		return 0, err
	case percent && v > 100:
		return 0, fmt.Errorf("%d per cent; expected at most 100", v)
	case percent:
		return int(math.Round(float64(n) * float64(v) / 100)), nil
	}
	return int(min(v, int64(n))), nil
}
