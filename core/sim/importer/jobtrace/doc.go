// Package jobtrace imports logs in which each record is one job with its size, its times
// and its end: Slurm's accounting (Slurm), Alibaba's trace of spot GPUs (GFS), and the
// traces of the GPU clusters Helios and Philly (Helios, Philly). It owns the interpretation
// of their records. It never runs a scenario, and package importer lists its functions.
//
// A job of several nodes is a gang: all its instances start together. CPUs and memory are
// divided evenly over the nodes. GPUs are devices (nvidia/gpu/MODEL); if their number is not
// a multiple of the number of nodes, some instances have one more. The namespace of a job
// is its account, organization or virtual cluster. The first submission is time 0.
//
// All functions are safe for concurrent use. docs/guides/import-traces.md lists the facts
// that each import loses.
package jobtrace
