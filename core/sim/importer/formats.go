package importer

import "github.com/cede-scheduler/cede/core/sim/scenario"

// Format is one kind of trace or dump.
type Format struct {
	Name   string // argument of `cede sim import`
	Title  string // one-line description
	Import func(Options, Source) (*scenario.File, *Report, error)
}

// Formats returns the supported formats, sorted by name.
func Formats() []Format {
	return []Format{
		{"google", "Google cluster trace of 2011: a folder with tasks.csv and machines.csv, or the raw event files", Google},
		{"kube", "a Kubernetes cluster: output of `kubectl get nodes,pods,pdb,priorityclasses,namespaces -A -o json`", Kube},
		{"nomad", "a Nomad cluster: a folder with the output of `nomad operator api` for /v1/nodes?resources=true, /v1/allocations?resources=true and jobs", Nomad},
		{"openb", "Alibaba GPU cluster trace of 2023: a folder with a node list and pod lists", OpenB},
		{"swf", "Standard Workload Format: a .swf file with its .machines file next to it", SWF},
	}
}
