package sim

import "github.com/cede-scheduler/cede/core/model"

// tainted creates an evaluation for each job with an allocation at time 0 on a node
// with a NoExecute taint. On a server, the arrival of the taint does this.
func (e *engine) tainted() (evals []*model.Evaluation) {
	banishes := map[string]bool{}
	for _, n := range e.file.Nodes {
		if n.HasNoExecute() {
			banishes[n.ID] = true
		}
	}
	known := map[*model.Job]bool{}
	for _, a := range e.file.Running {
		if banishes[a.NodeID] && !known[a.Job] {
			known[a.Job] = true
			evals = append(evals, e.evaluation(a.Job, model.TriggerNodeUpdate))
		}
	}
	e.hasNoExecute = len(evals) > 0
	return evals
}
