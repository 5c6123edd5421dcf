package sim

import "github.com/cede-scheduler/cede/core/model"

// drivenOut makes an evaluation for each job of which something runs at the beginning
// on a node with a taint that drives work out: in a server the taint's coming would.
func (e *engine) drivenOut() (evals []*model.Evaluation) {
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
	e.driven = len(evals) > 0
	return evals
}
