package importer

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// AssignNodePool keeps a job in its node pool, as imported jobs are. Without a pool of
// its own that is Nomad's default where the scenario's nodes tell theirs.
func AssignNodePool(f *scenario.File, j *model.Job, pool string) {
	told := slices.ContainsFunc(f.Nodes, func(n scenario.Node) bool { return n.Attributes[nodePool] != "" })
	if pool == "all" || !told && (pool == "" || pool == "default") {
		return
	}
	for _, g := range j.Groups {
		g.Constraints = append(g.Constraints, model.Constraint{Attribute: nodePool, Operator: model.OpEqual, Value: cmp.Or(pool, "default")})
	}
}
