package importer

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// AssignNodePool constrains a job to its node pool, as for imported jobs. An empty pool
// is Nomad's default pool if the nodes of the scenario have pools.
func AssignNodePool(f *scenario.File, j *model.Job, pool string) {
	hasPools := slices.ContainsFunc(f.Nodes, func(n scenario.Node) bool { return n.Attributes[nodePool] != "" })
	if pool == "all" || !hasPools && (pool == "" || pool == "default") {
		return
	}
	for _, g := range j.Groups {
		g.Constraints = append(g.Constraints, model.Constraint{Attribute: nodePool, Operator: model.OpEqual, Value: cmp.Or(pool, "default")})
	}
}
