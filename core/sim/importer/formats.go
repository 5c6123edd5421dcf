package importer

import (
	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/importer/jobtrace"
	"github.com/cede-scheduler/cede/core/sim/importer/kuberec"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Options configures an import.
type Options = build.Options

// A Source holds the files to import.
type Source = build.Source

// Progress reports the progress of an import.
type Progress = build.Progress

// A Report lists what an import read and changed.
type Report = build.Report

// A Note is a change that an import made, with its count.
type Note = build.Note

// An Unread is an object of a dump that could not be read.
type Unread = build.Unread

// NeverRan selects what happens to jobs that never ran.
type NeverRan = build.NeverRan

// A FileError is an error at a place of a file.
type FileError = build.FileError

// FileErrors lists the errors of files.
type FileErrors = build.FileErrors //nolint:errname // several errors

// Values of Options.NeverRan.
const (
	NeverRanDefault = build.NeverRanDefault
	NeverRanKeep    = build.NeverRanKeep
	NeverRanDrop    = build.NeverRanDrop
)

// Open returns the Source of a folder or a file.
func Open(name string) (Source, error) { return build.Open(name) }

// CleanName returns text with the characters that a name must not contain replaced.
func CleanName(text string) string { return build.CleanName(text) }

// Format is one kind of trace or dump.
type Format struct {
	Name   string // argument of `cede sim import`
	Title  string // one-line description
	Import func(Options, Source) (*scenario.File, *Report, error)
}

// Formats returns the supported formats, sorted by name.
func Formats() []Format {
	return []Format{
		{"gfs", "Alibaba spot GPU trace of 2026: a folder with node_info_df.csv and job_info_df.csv", jobtrace.GFS},
		{"google", "Google cluster trace of 2011: a folder with tasks.csv and machines.csv, or the raw event files", Google},
		{"helios", "Helios GPU clusters of 2020: the folder of one cluster, with cluster_log.csv and cluster_gpu_number.csv", jobtrace.Helios},
		{"kube", "a Kubernetes cluster: output of `kubectl get nodes,pods,pdb,priorityclasses,namespaces -A -o json`", Kube},
		{"kwok", "KWOK recording: output of `kwokctl snapshot record`", kuberec.KWOK},
		{"nomad", "a Nomad cluster: a folder with the output of `nomad operator api` for /v1/nodes?resources=true, /v1/allocations?resources=true and jobs", Nomad},
		{"openb", "Alibaba GPU cluster trace of 2023: a folder with a node list and pod lists", OpenB},
		{"philly", "Philly GPU clusters of 2017: a folder with cluster_job_log and cluster_machine_list", jobtrace.Philly},
		{"simkube", "SimKube trace of version 2 or 3, with `kubectl get nodes -o json` in nodes.json next to it", kuberec.SimKube},
		{"slurm", "Slurm accounting: output of `sacct --parsable2`, with `scontrol show node --oneliner` in nodes.txt next to it", jobtrace.Slurm},
		{"swf", "Standard Workload Format: a .swf file with its .machines file next to it", SWF},
	}
}
