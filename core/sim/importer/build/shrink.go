package build

import (
	"cmp"
	"crypto/md5"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// NodeOrder compares node names in the order in which nodes are retained: by the 32-bit
// FNV-1a hash of the name followed by the letter x, then by name. A smaller cluster is
// therefore a subset of every larger one, and the selection is independent of the
// properties of the nodes.
func NodeOrder(a, b string) int {
	return cmp.Or(cmp.Compare(nodeHash(a), nodeHash(b)), cmp.Compare(a, b))
}

func nodeHash(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	_, _ = h.Write([]byte{'x'})
	return h.Sum32()
}

// Sampled reports whether a fraction of the ids, in steps of a thousandth, includes this
// id: if the first 32 bits of its MD5 hash, modulo 1000, are below the thousandths of the
// fraction. A larger fraction includes every smaller one.
func Sampled(id string, fraction float64) bool {
	if fraction == 0 {
		return true
	}
	sum := md5.Sum([]byte(id))
	return binary.BigEndian.Uint32(sum[:])%1000 < uint32(math.Round(fraction*1000))
}

// shrink returns the nodes that the options select, in the order of the trace.
func (o *Options) shrink(nodes []scenario.Node) []scenario.Node {
	nodes = slices.DeleteFunc(nodes, func(n scenario.Node) bool { return !Sampled(n.ID, o.Sample) })
	keep := len(nodes)
	switch {
	case o.Keep != 0:
		keep = max(1, int(math.Round(o.Keep*float64(len(nodes)))))
	case o.Nodes != 0:
		keep = o.Nodes
	}
	if keep >= len(nodes) {
		return nodes
	}
	names := make([]string, len(nodes))
	for i := range nodes {
		names[i] = nodes[i].ID
	}
	slices.SortFunc(names, NodeOrder)
	kept := make(map[string]bool, keep)
	for _, n := range names[:keep] {
		kept[n] = true
	}
	return slices.DeleteFunc(nodes, func(n scenario.Node) bool { return !kept[n.ID] })
}
