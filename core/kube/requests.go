package kube

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// exact is amounts by the names of resources here, in exactUnit.
type exact map[string]int64

// add adds amounts, up to what the model can hold.
func (e exact) add(o exact) {
	for name, n := range o {
		e[name] = min(e[name]+n, model.MaxAmount)
	}
}

// raise raises amounts to those of o.
func (e exact) raise(o exact) {
	for name, n := range o {
		e[name] = max(e[name], n)
	}
}

// asked is what a pod asks for, as kube-scheduler counts it: the sum of its
// containers and sidecars, or what one of its init containers needs beside the
// sidecars before it where that is more; what the pod asks for as a whole goes
// before that; and the overhead comes on top.
func (t *Translator) asked(p *Pod) exact {
	sum, sidecars, peak := exact{}, exact{}, exact{}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		ask := t.requests(p, &c.Resources)
		ask.raise(t.allocated(p, c.Name))
		sum.add(ask)
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		ask := t.requests(p, &c.Resources)
		if c.RestartPolicy == "Always" {
			sum.add(ask)
			sidecars.add(ask)
			peak.raise(sidecars)
			continue
		}
		ask.add(sidecars)
		peak.raise(ask)
	}
	sum.raise(peak)
	if p.Spec.Resources != nil {
		maps.Copy(sum, t.requests(p, p.Spec.Resources))
	}
	sum.add(t.quantities(p, p.Spec.Overhead))
	for name, n := range sum {
		if n == 0 {
			delete(sum, name)
		}
	}
	return sum
}

// requests is what a container asks for: a limit without a request is one, as
// the API server sees to in pods that it has admitted.
func (t *Translator) requests(p *Pod, r *Requirements) exact {
	ask := t.quantities(p, r.Requests)
	for name, q := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			ask.add(t.quantities(p, ResourceList{name: q}))
		}
	}
	return ask
}

// allocated is what a container was given.
func (t *Translator) allocated(p *Pod, name string) exact {
	for i := range p.Status.Containers {
		if c := &p.Status.Containers[i]; c.Name == name {
			return t.quantities(p, c.Allocated)
		}
	}
	return nil
}

func (t *Translator) quantities(p *Pod, list ResourceList) exact {
	e := make(exact, len(list)+2)
	for name, q := range list {
		n, err := t.amounts.of(resourceName(name), q, false)
		if err = t.atMost(err); err != nil || !isResource(name) {
			t.noAmount("pod "+p.Metadata.full(), name, q)
			continue
		}
		e[resourceName(name)] += n
	}
	return e
}

// atMost takes an amount that is too large for the largest there is.
func (t *Translator) atMost(err error) error {
	if !errors.Is(err, model.ErrQuantityTooLarge) {
		return err
	}
	t.Notes.soft("amounts above 2^48 units (bytes of memory and disk)", "counted as that")
	return nil
}

const noAmounts = "amounts that are no quantities"

// noAmount notes an amount that is none.
func (t *Translator) noAmount(whose, name string, q Quantity) {
	t.Notes.hard(noAmounts, "taken as 0")
	err := fmt.Errorf("%s: %.60s: %.60q is no amount", short(whose), name, string(q))
	if t.wrong(err); t.firstNoAmount == nil {
		t.firstNoAmount = err
	}
}

// isResource is whether a text may name a resource.
func isResource(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// resources are exact amounts in the model's units, of those resources that are
// told.
func (t *Translator) resources(ask exact) model.Resources {
	r := make(model.Resources, len(ask)+1)
	for name, n := range ask {
		if t.told != nil && !t.told[name] {
			t.new = t.new || t.settled && !t.weighed[name]
			continue
		}
		r[name] = inModel(name, n, true)
	}
	if t.slots {
		r[podSlots] = 1
	}
	return r
}

// chooseResources decides which resources are told: a cluster may have 16. Those
// that nobody asks for are left out first, then those that few ask for.
func (t *Translator) chooseResources(capacity, asks []exact) {
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
	t.weighed = map[string]bool{}
	for name := range count {
		t.weighed[name] = true
	}
	t.told = map[string]bool{"cpu": true, "memory": true, "disk": true, "network": true}
	t.slots = nodes[podSlots] > 0
	if t.slots {
		t.told[podSlots] = true
	}
	var others []string
	for name := range count {
		if !t.told[name] {
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
		if len(t.told) == model.MaxDimensions {
			t.Notes.Add(Note{
				Count: count[name], What: fmt.Sprintf("pods that ask for %.80s, beyond the %d resources that a cluster may have here", name, model.MaxDimensions),
				Done: "placed as if they did not ask for it", Hard: true,
			})
			continue
		}
		t.told[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if t.told[name] || count[name] > 0 {
			continue
		}
		if len(t.told) < model.MaxDimensions && !strings.HasPrefix(name, "attachable-volumes-") {
			t.told[name] = true
			continue
		}
		t.Notes.Add(Note{Count: nodes[name], What: fmt.Sprintf("nodes with %.80s, which no pod asks for", name), Done: "not told"})
	}
}
