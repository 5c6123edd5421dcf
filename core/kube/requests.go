package kube

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// An exactAmounts holds amounts by the model's resource names, in units of exactUnit.
type exactAmounts map[string]int64

// add adds o, saturating at model.MaxAmount.
func (e exactAmounts) add(o exactAmounts) {
	for name, n := range o {
		e[name] = min(e[name]+n, model.MaxAmount)
	}
}

// maxWith raises each amount to that of o if o's is larger.
func (e exactAmounts) maxWith(o exactAmounts) {
	for name, n := range o {
		e[name] = max(e[name], n)
	}
}

// A requestReader computes resource requests and reports the quantities that it
// cannot read.
type requestReader struct {
	amounts amounts
	report  *Report
	invalid *invalidValues
}

func (t *Translator) requestReader() requestReader {
	return requestReader{t.amounts, t.Report, &t.invalid}
}

// newRequestReader returns a reader for callers that do not need its report.
func newRequestReader() requestReader {
	return requestReader{amounts{}, &Report{}, &invalidValues{}}
}

// pod returns the resource request of a pod as kube-scheduler computes it: the sum over
// containers and sidecars, or the largest request of an init container together with
// the sidecars started before it if that is larger. Pod-level resources override the
// result, and the overhead is added last. Resources with a request of 0 are omitted.
func (r requestReader) pod(p *Pod) exactAmounts {
	sum, sidecars, peak := exactAmounts{}, exactAmounts{}, exactAmounts{}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		ask := r.container(p, &c.Resources)
		ask.maxWith(r.allocated(p, c.Name))
		sum.add(ask)
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		ask := r.container(p, &c.Resources)
		if c.RestartPolicy == "Always" {
			sum.add(ask)
			sidecars.add(ask)
			peak.maxWith(sidecars)
			continue
		}
		ask.add(sidecars)
		peak.maxWith(ask)
	}
	sum.maxWith(peak)
	if p.Spec.Resources != nil {
		maps.Copy(sum, r.container(p, p.Spec.Resources))
	}
	sum.add(r.list(p, p.Spec.Overhead))
	for name, n := range sum {
		if n == 0 {
			delete(sum, name)
		}
	}
	return sum
}

// container returns the requests of one container. If a resource has a limit but no
// request, the limit is the request: the API server defaults admitted pods the same way.
func (r requestReader) container(p *Pod, res *ResourceRequirements) exactAmounts {
	ask := r.list(p, res.Requests)
	for name, q := range res.Limits {
		if _, ok := res.Requests[name]; !ok {
			ask.add(r.list(p, ResourceList{name: q}))
		}
	}
	return ask
}

// allocated returns the resources that the kubelet has allocated to a container, or nil
// if the status does not list the container.
func (r requestReader) allocated(p *Pod, name string) exactAmounts {
	for i := range p.Status.Containers {
		if c := &p.Status.Containers[i]; c.Name == name {
			return r.list(p, c.Allocated)
		}
	}
	return nil
}

// list parses a resource list. Invalid quantities are reported and omitted.
func (r requestReader) list(p *Pod, list ResourceList) exactAmounts {
	e := make(exactAmounts, len(list)+2)
	for name, q := range list {
		n, err := r.amounts.of(resourceName(name), q, false)
		if err = r.clampTooLarge(err); err != nil || !isResource(name) {
			r.addInvalid("pod", &p.Metadata, name, q)
			continue
		}
		e[resourceName(name)] += n
	}
	return e
}

// node returns the allocatable resources of a node. If it reports none, its capacity is
// used instead.
func (r requestReader) node(n *Node) exactAmounts {
	list := n.Status.Allocatable
	if len(list) == 0 {
		list = n.Status.Capacity
		if len(list) == 0 {
			r.report.warn("nodes without allocatable resources or capacity", "kept; no pod fits on them")
		} else {
			r.report.info("nodes without allocatable resources", "their capacity is used")
		}
	}
	e := make(exactAmounts, len(list))
	for name, q := range list {
		amount, err := r.amounts.of(resourceName(name), q, true)
		if err = r.clampTooLarge(err); err != nil || !isResource(name) {
			r.addInvalid("node", &n.Metadata, name, q)
			continue
		}
		e[resourceName(name)] = amount
	}
	return e
}

// clampTooLarge returns nil for the error that an amount is too large, after it has
// reported that the largest amount is used. It returns other errors unchanged.
func (r requestReader) clampTooLarge(err error) error {
	if !errors.Is(err, model.ErrQuantityTooLarge) {
		return err
	}
	r.report.info("amounts above 2^48 units (bytes of memory and disk)", "reduced to 2^48")
	return nil
}

// invalidAmounts is the subject of the note on invalid quantities.
const invalidAmounts = "invalid quantities"

func (r requestReader) addInvalid(kind string, m *Metadata, name string, q Quantity) {
	r.report.warn(invalidAmounts, "read as 0")
	err := fmt.Errorf("%s: %.60s: %w", short(kind+" "+m.full()), name, invalidQuantity(q))
	if line := r.invalid.lines[m]; line > 0 {
		err = fmt.Errorf("line %d: %w", line, err)
	}
	if r.invalid.add(err); r.invalid.firstAmount == nil {
		r.invalid.firstAmount = err
	}
}

// isResource reports whether a text is usable as a resource name.
func isResource(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// resources converts exact amounts to the model's units and drops the resources that
// the cluster does not retain.
func (t *Translator) resources(ask exactAmounts) model.Resources {
	r := make(model.Resources, len(ask)+1)
	for name, n := range ask {
		if t.retained != nil && !t.retained[name] {
			t.needsRebuild = t.needsRebuild || t.frozen && !t.considered[name]
			continue
		}
		r[name] = inModel(name, n, true)
	}
	if t.hasPodSlots {
		r[podSlots] = 1
	}
	return r
}

// chooseResources selects the resources to retain, at most model.MaxDimensions. Those
// that no pod requests are dropped first, then those that the fewest pods request.
func (t *Translator) chooseResources(capacity, asks []exactAmounts) {
	count, nodes := map[string]int{}, map[string]int{}
	for _, ask := range asks {
		for name := range ask {
			count[name]++
		}
	}
	for _, c := range capacity {
		for name, n := range c {
			if n > 0 {
				nodes[name]++
			}
		}
	}
	t.considered = map[string]bool{}
	for name := range count {
		t.considered[name] = true
	}
	t.retained = map[string]bool{"cpu": true, "memory": true, "disk": true, "network": true}
	t.hasPodSlots = nodes[podSlots] > 0
	if t.hasPodSlots {
		t.retained[podSlots] = true
	}
	var others []string
	for name := range count {
		if !t.retained[name] {
			others = append(others, name)
		}
	}
	slices.SortFunc(others, func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
	for _, name := range others {
		if len(t.retained) == model.MaxDimensions {
			t.Report.Add(Note{
				Count: count[name], Subject: fmt.Sprintf("pods that request %.80s, beyond the limit of %d resources per cluster", name, model.MaxDimensions),
				Handling: "placed without this request", AffectsPlacement: true,
			})
			continue
		}
		t.retained[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if t.retained[name] || count[name] > 0 {
			continue
		}
		if len(t.retained) < model.MaxDimensions && !strings.HasPrefix(name, "attachable-volumes-") {
			t.retained[name] = true
			continue
		}
		t.Report.Add(Note{Count: nodes[name], Subject: fmt.Sprintf("nodes with %.80s, which no pod requests", name), Handling: "left out"})
	}
}
