package kube

import (
	"slices"
	"strconv"

	"github.com/cede-scheduler/cede/core/kube/dra"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
)

// A claimReader translates the resource claims of pods. The zero value knows no claims
// and no devices.
type claimReader struct {
	inventory *dra.Inventory // nil: no device is known, or only those of a scenario
	index     dra.Index
	claims    map[string]*dra.Claim // by namespace and name
	templates map[string]*dra.Template
}

// newClaimReader returns a reader for the objects of a dump.
func newClaimReader(o *dra.Objects) claimReader {
	c := claimReader{claims: map[string]*dra.Claim{}, templates: map[string]*dra.Template{}}
	if o.IsEmpty() {
		return c
	}
	c.inventory = dra.New(o)
	for _, claim := range o.Claims {
		c.claims[claim.Metadata.Key()] = claim
	}
	for _, t := range o.Templates {
		c.templates[t.Metadata.Key()] = t
	}
	return c
}

// add adds the claims and templates of manifests.
func (c *claimReader) add(o *dra.Objects) {
	more := newClaimReader(&dra.Objects{Claims: o.Claims, Templates: o.Templates})
	c.claims, c.templates = more.claims, more.templates
}

// indexDevices derives the index from the nodes.
func (c *claimReader) indexDevices(nodes []*model.Node) {
	c.index = dra.Index{}
	for _, n := range nodes {
		for i := range n.Devices {
			c.index.Add(&n.Devices[i])
		}
	}
}

// devices returns the device groups of a node.
func (c *claimReader) devices(node string) []model.Device {
	if c.inventory == nil {
		return nil
	}
	return slices.Clone(c.inventory.Devices(node))
}

// find returns the spec of a pod's claim, and the claim if it exists already. It returns
// nil if neither the claim nor its template is known.
func (c *claimReader) find(p *Pod, r *PodClaim) (*dra.ClaimSpec, *dra.Claim) {
	name := r.Claim
	for _, s := range p.Status.ResourceClaims {
		if s.Name == r.Name && s.Claim != "" {
			name = s.Claim
		}
	}
	if claim := c.claims[dra.Key(p.namespace(), name)]; claim != nil && name != "" {
		return &claim.Spec, claim
	}
	if t := c.templates[dra.Key(p.namespace(), r.Template)]; t != nil && r.Template != "" {
		return &t.Spec.Spec, nil
	}
	return nil, nil
}

// claimsSubject is the subject of the note on pods with claims that are not translated.
const claimsSubject = "pods with resource claims (dynamic resource allocation)"

// requestDevices adds the device requests of the pod's claims to its group. It sets
// needsRebuild if the nodes were translated without the devices that a claim selects.
func (t *Translator) requestDevices(p *Pod, g *model.Group) {
	if len(p.Spec.ResourceClaims) == 0 {
		return
	}
	if t.claimed.inventory == nil && len(t.claimed.index) == 0 {
		t.Report.warn(claimsSubject, "placed without them: the devices of the cluster are unknown")
		return
	}
	for i := range p.Spec.ResourceClaims {
		spec, claim := t.claimed.find(p, &p.Spec.ResourceClaims[i])
		switch {
		case spec == nil:
			t.Report.warn("resource claims that are neither in the dump nor created from a template there", "left out")
			continue
		case claim != nil && claim.IsShared():
			t.Report.warn("resource claims that several pods share", "left out: the eviction of one pod releases no device")
			continue
		case t.frozen && t.claimed.inventory != nil && !t.claimed.inventory.Covers(spec):
			t.needsRebuild = true
			return
		}
		requests, findings := t.claimed.index.Requests(spec, t.claimed.inventory)
		g.Devices = append(g.Devices, requests...)
		for _, f := range findings {
			t.Report.warn(f.Subject, f.Handling)
		}
	}
	if len(g.Devices) > fieldcheck.MaxRequests {
		g.Devices = nil
		t.Report.warn("pods with more device requests than a group can have", "placed without them")
	}
}

// DevicesOf returns the device groups that an instance uses, one for each device request
// of its group: those that its claims name. Until they do, or if they do not correspond to the
// requests, it returns the first groups that match. The result is nil if a request has no
// matching group.
func (r *IncrementalCluster) DevicesOf(i *Instance) []model.DeviceUse {
	node := r.pods.nodes[i.Node]
	if len(i.Group.Devices) == 0 || node == nil {
		return nil
	}
	if uses, ok := r.allocated(i); ok {
		return uses
	}
	uses := make([]model.DeviceUse, 0, len(i.Group.Devices))
	for k := range i.Group.Devices {
		request := &i.Group.Devices[k]
		at := slices.IndexFunc(node.Devices, func(d model.Device) bool { return request.Matches(&d) })
		if at < 0 {
			return nil
		}
		uses = append(uses, model.DeviceUse{ID: node.Devices[at].ID, Count: request.Count})
	}
	return uses
}

// allocated returns the device groups that the claims of an instance name.
func (t *Translator) allocated(i *Instance) ([]model.DeviceUse, bool) {
	c := &t.claimed
	if c.inventory == nil {
		return nil, false
	}
	var uses []model.DeviceUse
	for k := range i.Pod.Spec.ResourceClaims {
		_, claim := c.find(i.Pod, &i.Pod.Spec.ResourceClaims[k])
		if claim == nil {
			return nil, false
		}
		if claim.IsShared() {
			continue
		}
		requests, _ := c.index.Requests(&claim.Spec, c.inventory)
		own, ok := c.inventory.Uses(claim, requests)
		if !ok {
			return nil, false
		}
		uses = append(uses, own...)
	}
	return uses, len(uses) == len(i.Group.Devices)
}

// fitDevices raises the counts of device groups so that all instances have the devices that
// they request: those in use may be missing in the slices, and a group of a scenario does
// not name the devices of each pod. Instances get devices as a scenario assigns them.
func (w *podTranslator) fitDevices() {
	free := map[string][]int32{}
	for _, i := range w.Instances {
		if len(i.Group.Devices) == 0 {
			continue
		}
		node := w.nodes[i.Node]
		if free[i.Node] == nil {
			free[i.Node] = make([]int32, 0, len(node.Devices)+1)
			for _, d := range node.Devices {
				free[i.Node] = append(free[i.Node], d.Count)
			}
		}
		if !reserveDevices(node, free[i.Node], i.Group.Devices) {
			w.Report.info("pods with devices that the slices of their node do not list as free", "devices added to the node")
			free[i.Node] = addDevices(node, free[i.Node], i.Group.Devices)
		}
	}
}

// reserveDevices deducts requests from the free devices of a node. It returns false if
// they do not fit.
func reserveDevices(node *model.Node, free []int32, requests []model.DeviceRequest) bool {
	for _, choice := range node.DeviceChoices(&model.Ask{Devices: requests}) {
		left := slices.Clone(free)
		fits := true
		for r, at := range choice {
			left[at] -= requests[r].Count
			fits = fits && left[at] >= 0
		}
		if fits {
			copy(free, left)
			return true
		}
	}
	return false
}

// addDevices adds the devices of requests to a node, all of which are in use.
func addDevices(node *model.Node, free []int32, requests []model.DeviceRequest) []int32 {
	for r := range requests {
		request := &requests[r]
		at := slices.IndexFunc(node.Devices, func(d model.Device) bool {
			d.Count = request.Count
			return request.Matches(&d)
		})
		if at < 0 {
			one := model.Device{ID: "unknown/" + request.ID + "/" + strconv.Itoa(len(node.Devices)+1), Attributes: map[string]string{}}
			for _, c := range request.Constraints {
				one.Attributes[c.Attribute] = "1"
			}
			at, node.Devices, free = len(node.Devices), append(node.Devices, one), append(free, 0)
		}
		node.Devices[at].Count += request.Count
	}
	return free
}

// reportDevices reports what the inventory does not express.
func (t *Translator) reportDevices() {
	if t.claimed.inventory == nil {
		return
	}
	for subject, n := range t.claimed.inventory.Findings {
		t.Report.Add(Note{Count: n, Subject: subject, Handling: "left out"})
	}
}
