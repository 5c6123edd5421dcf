package model

import (
	"maps"
	"strings"
)

// A Cluster is a member cluster: one pool of capacity for bindings. Its own
// scheduler places the replicas within it.
type Cluster struct {
	ID         string
	Capacity   Resources
	Attributes map[string]string // read by constraints, in addition to cluster.id
	Down       bool              // it accepts no new assignments; existing ones remain

	SecretHash [32]byte // sha256 of its agent's secret; zero if it has no agent
	// Reported is the part of Capacity that bindings may use, as the agent reports
	// it: the rest is used by other workload. It includes what bindings hold, since
	// free amounts would be outdated by every assignment. Names that are absent are
	// as in Capacity. If it is nil, all of Capacity may be used.
	Reported Resources

	CreateIndex uint64
	ModifyIndex uint64

	Avail Vector // Capacity limited by Reported; set by Compile
}

// HasAgent reports whether an agent reports for the cluster. If not, assignments
// start and end by the clock.
func (c *Cluster) HasAgent() bool { return c.SecretHash != [32]byte{} }

// Compile derives Avail. The state calls it before it publishes a cluster. dims
// must contain every name in Capacity. Reported amounts above Capacity are ignored.
func (c *Cluster) Compile(dims *Dimensions) {
	usable := maps.Clone(c.Capacity)
	for name, amount := range c.Reported { // any order: each is its own
		if has, ok := usable[name]; ok {
			usable[name] = max(0, min(has, amount))
		}
	}
	c.Avail = dims.Vector(usable)
}

// A ClusterChange updates a registered cluster.
type ClusterChange struct {
	ID       string
	Down     bool
	Reports  bool      // Reported replaces the earlier report; otherwise that remains
	Reported Resources // as of Cluster
	// Leases replaces, if Reports is set, what the cluster reserves for other
	// pools. The claimant of each claim is a LeaseClaimant.
	Leases []*Claim
}

// LeaseClaimant returns the claimant of capacity that a cluster reserves for
// another pool. No job or binding has such a key.
func LeaseClaimant(pool, id string) JobKey { return JobKey{ID: pool + "/" + id} }

// ForeignLease returns the pool and ID of a lease of another pool; it returns false
// if the claim is not one.
func (c *Claim) ForeignLease() (pool, id string, ok bool) {
	if !c.IsForeign() {
		return "", "", false
	}
	return strings.Cut(c.Claimant.ID, "/")
}

// IsForeign reports whether the claim is a lease of another pool, as a member
// cluster reports it.
func (c *Claim) IsForeign() bool { return c.Claimant.Namespace == "" }

// AttributeClusterID is the attribute that names a cluster to constraints.
const AttributeClusterID = "cluster.id"

// Attribute returns the value of a name in constraints: cluster.id or one of
// Attributes.
func (c *Cluster) Attribute(name string) (string, bool) {
	if name == AttributeClusterID {
		return c.ID, true
	}
	v, ok := c.Attributes[name]
	return v, ok
}

// ClusterLocation returns the name of a member cluster in fields that otherwise
// name a node. No node has such a name.
func ClusterLocation(id string) string { return clusterPrefix + id }

// ParseClusterLocation is the inverse of ClusterLocation. It returns false for a
// node.
func ParseClusterLocation(place string) (id string, ok bool) {
	if len(place) < len(clusterPrefix) || place[:len(clusterPrefix)] != clusterPrefix {
		return "", false
	}
	return place[len(clusterPrefix):], true
}

// clusterPrefix cannot begin a node ID, since those contain no slash.
const clusterPrefix = "cluster/"
