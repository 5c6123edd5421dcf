package model

import (
	"maps"
	"strings"
)

// Cluster is a member cluster: one pool of capacity that bindings are spread
// over. What runs inside it, and where, is its own scheduler's business.
type Cluster struct {
	ID         string
	Capacity   Resources
	Attributes map[string]string // what constraints read, beside cluster.id
	Down       bool              // it takes nothing new; what is assigned to it stays

	SecretHash [32]byte // sha256 of its agent's own secret; zero: no agent speaks for it
	// Reported is how much of Capacity the agent says that bindings may use, what
	// they hold included: the rest is taken by work of others. It is no measure of
	// what is free, as that would be out of date with every assignment. Names that
	// are absent are as in Capacity; nil: nobody reports, and all of it may be used.
	Reported Resources

	CreateIndex uint64
	ModifyIndex uint64

	Avail Vector // Capacity, as far as it is Reported; set by Compile
}

// HasAgent reports whether an agent reports for the cluster. What is assigned to a
// cluster without one starts and ends by the clock.
func (c *Cluster) HasAgent() bool { return c.SecretHash != [32]byte{} }

// Compile derives Avail. The state calls it before it publishes a cluster; dims
// must know every name in Capacity. What is reported beyond Capacity is ignored.
func (c *Cluster) Compile(dims *Dimensions) {
	usable := maps.Clone(c.Capacity)
	for name, amount := range c.Reported { // any order: each is its own
		if has, ok := usable[name]; ok {
			usable[name] = max(0, min(has, amount))
		}
	}
	c.Avail = dims.Vector(usable)
}

// ClusterChange is what is learnt of a cluster that is registered.
type ClusterChange struct {
	ID       string
	Down     bool
	Reports  bool      // Reported replaces what was reported before; else that stays
	Reported Resources // as of Cluster
	// Leases replaces, where it Reports, what the cluster keeps for other pools. Each
	// is a claim whose claimant LeaseHolder names.
	Leases []*Claim
}

// LeaseClaimant is the claimant of room that a cluster keeps for another pool: no
// job or binding is called so.
func LeaseClaimant(pool, id string) JobKey { return JobKey{ID: pool + "/" + id} }

// ForeignLease is the pool and the id that LeaseHolder was told; false: the claim is no
// other pool's.
func (c *Claim) ForeignLease() (pool, id string, ok bool) {
	if !c.IsForeign() {
		return "", "", false
	}
	return strings.Cut(c.Claimant.ID, "/")
}

// IsForeign is whether the claim is another pool's, as a member cluster reports it.
func (c *Claim) IsForeign() bool { return c.Claimant.Namespace == "" }

// AttributeClusterID is the attribute that names a cluster to constraints.
const AttributeClusterID = "cluster.id"

// Attribute looks up what constraints call name: cluster.id or one of
// Attributes.
func (c *Cluster) Attribute(name string) (string, bool) {
	if name == AttributeClusterID {
		return c.ID, true
	}
	v, ok := c.Attributes[name]
	return v, ok
}

// ClusterLocation is how evaluations and the broker name a member cluster among
// the places that work waits for: no node is called so.
func ClusterLocation(id string) string { return clusterPrefix + id }

// ParseClusterLocation is the inverse of ClusterPlace; false for a node.
func ParseClusterLocation(place string) (id string, ok bool) {
	if len(place) < len(clusterPrefix) || place[:len(clusterPrefix)] != clusterPrefix {
		return "", false
	}
	return place[len(clusterPrefix):], true
}

// clusterPrefix cannot begin the id of a node: those have no slash.
const clusterPrefix = "cluster/"
