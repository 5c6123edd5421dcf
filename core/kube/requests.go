package kube

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// exactAmounts is amounts by the names of resources here, in exactUnit.
type exactAmounts map[string]int64

// add adds amounts, up to what the model can hold.
func (e exactAmounts) add(o exactAmounts) {
	for name, n := range o {
		e[name] = min(e[name]+n, model.MaxAmount)
	}
}

// maxWith raises amounts to those of o.
func (e exactAmounts) maxWith(o exactAmounts) {
	for name, n := range o {
		e[name] = max(e[name], n)
	}
}

// podRequests is what a pod asks for, as kube-scheduler counts it: the sum of its
// containers and sidecars, or what one of its init containers needs beside the
// sidecars before it where that is more; what the pod asks for as a whole goes
// before that; and the overhead comes on top.
func (t *Translator) podRequests(p *Pod) exactAmounts {
	sum, sidecars, peak := exactAmounts{}, exactAmounts{}, exactAmounts{}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		ask := t.containerRequests(p, &c.Resources)
		ask.maxWith(t.allocated(p, c.Name))
		sum.add(ask)
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		ask := t.containerRequests(p, &c.Resources)
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
		maps.Copy(sum, t.containerRequests(p, p.Spec.Resources))
	}
	sum.add(t.parseList(p, p.Spec.Overhead))
	for name, n := range sum {
		if n == 0 {
			delete(sum, name)
		}
	}
	return sum
}

// containerRequests is what a container asks for: a limit without a request is one, as
// the API server sees to in pods that it has admitted.
func (t *Translator) containerRequests(p *Pod, r *ResourceRequirements) exactAmounts {
	ask := t.parseList(p, r.Requests)
	for name, q := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			ask.add(t.parseList(p, ResourceList{name: q}))
		}
	}
	return ask
}

// allocated is what a container was given.
func (t *Translator) allocated(p *Pod, name string) exactAmounts {
	for i := range p.Status.Containers {
		if c := &p.Status.Containers[i]; c.Name == name {
			return t.parseList(p, c.Allocated)
		}
	}
	return nil
}

func (t *Translator) parseList(p *Pod, list ResourceList) exactAmounts {
	e := make(exactAmounts, len(list)+2)
	for name, q := range list {
		n, err := t.amounts.of(resourceName(name), q, false)
		if err = t.clampTooLarge(err); err != nil || !isResource(name) {
			t.addInvalidAmount("pod "+p.Metadata.full(), name, q)
			continue
		}
		e[resourceName(name)] += n
	}
	return e
}

// clampTooLarge takes an amount that is too large for the largest there is.
func (t *Translator) clampTooLarge(err error) error {
	if !errors.Is(err, model.ErrQuantityTooLarge) {
		return err
	}
	t.Report.info("amounts above 2^48 units (bytes of memory and disk)", "counted as that")
	return nil
}

const invalidAmounts = "amounts that are no quantities"

// addInvalidAmount notes an amount that is none.
func (t *Translator) addInvalidAmount(whose, name string, q Quantity) {
	t.Report.warn(invalidAmounts, "taken as 0")
	err := fmt.Errorf("%s: %.60s: %.60q is no amount", short(whose), name, string(q))
	if t.addInvalid(err); t.firstNoAmount == nil {
		t.firstNoAmount = err
	}
}

// isResource is whether a text may name a resource.
func isResource(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// resources are exact amounts in the model's units, of those resources that are
// told.
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

// chooseResources decides which resources are told: a cluster may have 16. Those
// that nobody asks for are left out first, then those that few ask for.
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
				Count: count[name], Subject: fmt.Sprintf("pods that ask for %.80s, beyond the %d resources that a cluster may have here", name, model.MaxDimensions),
				Handling: "placed as if they did not ask for it", AffectsPlacement: true,
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
		t.Report.Add(Note{Count: nodes[name], Subject: fmt.Sprintf("nodes with %.80s, which no pod asks for", name), Handling: "not told"})
	}
}
