package model

// Cluster is a member cluster: one pool of capacity that bindings are spread
// over. What runs inside it, and where, is its own scheduler's business.
type Cluster struct {
	ID         string
	Capacity   Resources
	Attributes map[string]string // what constraints read, beside cluster.id
	Down       bool              // it takes nothing new; what is assigned to it stays

	CreateIndex uint64
	ModifyIndex uint64

	Avail Vector // Capacity; set by Compile
}

// Compile derives Avail. The state calls it before it publishes a cluster; dims
// must know every name in Capacity.
func (c *Cluster) Compile(dims *Dimensions) { c.Avail = dims.Vector(c.Capacity) }

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

// ClusterPlace is how evaluations and the broker name a member cluster among
// the places that work waits for: no node is called so.
func ClusterPlace(id string) string { return clusterPrefix + id }

// ClusterOfPlace is the inverse of ClusterPlace; false for a node.
func ClusterOfPlace(place string) (id string, ok bool) {
	if len(place) < len(clusterPrefix) || place[:len(clusterPrefix)] != clusterPrefix {
		return "", false
	}
	return place[len(clusterPrefix):], true
}

// clusterPrefix cannot begin the id of a node: those have no slash.
const clusterPrefix = "cluster/"
