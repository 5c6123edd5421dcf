package importer

import "github.com/cede-scheduler/cede/core/sim/scenario"

// Format is one kind of trace, or of dump.
type Format struct {
	Name   string // as `cede sim import` takes it
	Title  string // one line for people
	Import func(Options, Source) (*scenario.File, *Report, error)
}

// Formats lists every kind of trace, by name.
func Formats() []Format {
	return []Format{
		{"google", "Google cluster trace of 2011: a folder with tasks.csv and machines.csv, or the raw event files", Google},
		{"kube", "a Kubernetes cluster: what `kubectl get nodes,pods,pdb,priorityclasses,namespaces -A -o json` writes", Kube},
		{"nomad", "a Nomad cluster: a folder with what `nomad operator api` writes of /v1/nodes?resources=true, /v1/allocations?resources=true and jobs", Nomad},
		{"openb", "Alibaba GPU cluster trace of 2023: a folder with a node list and pod lists", OpenB},
		{"swf", "Standard Workload Format: a .swf file with its .machines beside it", SWF},
	}
}
