// Package importer converts cluster traces and dumps into scenarios: OpenB (Alibaba's
// GPU cluster of 2023), Google (the cluster trace of 2011), SWF (logs in the Standard
// Workload Format, with MetaCentrum's extra columns), and Kube and Nomad, dumps of
// clusters of these kinds. It owns the interpretation of a trace's rows, and the
// options that select a part of a trace: Keep and Nodes (fewer nodes), Compress (more
// jobs per time), Sample (a scale model), From, Until and Limit.
//
// It never runs a scenario, never invents jobs, and never drops any silently: facts
// that a scenario cannot express and unusual rows are counted in the Report. If a row
// is invalid, the import returns an error with the file and the line. The same files
// and options give the same scenario, byte for byte. `cede sim import` calls it; all
// functions are safe for concurrent use.
//
// # Common rules
//
// Keep and Nodes select nodes in NodeOrder. Compress divides submit times, relative
// to the start of the window, and does not change durations. The id of a job is that
// of the trace. If an instance ran for no time, its duration is one unit of the
// trace's clock, because a duration of 0 means unlimited. Jobs and events are in
// order of submission.
//
// # kube
//
// A dump of a Kubernetes cluster holds the state at one time: running and pending
// pods. It is imported completely; the only options are Name and Strict. An object
// that cannot be read is listed in the report and left out, or is an error if Strict
// is set. core/kube translates the objects (see its DESIGN.md); this package writes
// the result. Running pods are allocations at the start, terminating pods are stopped
// at 0s, and jobs with pending pods are submitted at 0s: those with a nominated node
// first, then in order of creation. No allocation has a duration. AddManifests adds
// the jobs of manifests.
//
// # nomad
//
// A dump of a Nomad cluster holds responses of its API, as `nomad operator api`
// writes them, in any number of .json files, distinguished by their content. Lists of
// nodes and allocations with resources suffice. Job specifications (/v1/job/ID) add
// counts and constraints, single nodes (/v1/node/ID) the attributes that constraints
// read, and the scheduler configuration the job types that may be preempted. Units
// are preserved: cpu is Nomad's MHz. Running allocations run at the start, and jobs
// with fewer running allocations than their count are submitted at 0s. If the
// specification of a job is missing, the job is derived from the resources of its
// allocations.
//
// # openb
//
// A pod is a batch job of one instance, submitted at creation_time, with a duration
// of deletion_time − scheduled_time. LS and Guaranteed have priority 80, Burstable
// 50, BE 20. Pods that were never scheduled have no duration and are left out; with
// NeverRanKeep they are submitted, and stopped at deletion_time.
//
// A GPU is 1,000 units of the resource gpu-milli. A node has 1,000 per GPU; a pod
// requests gpu_milli, or 1,000 per GPU if it requests several. This models totals: a
// share may straddle two GPUs, which the real cluster does not allow, so slightly
// more pods can be placed. It preserves the load of the trace, in which two of five
// pods share a GPU. With WholeGPUs, GPUs are devices (nvidia/gpu/<model>) and every
// share is a whole GPU: placements are exact, but the request is about a third
// higher. With GPUShares, each GPU is a device group of 1,000 thousandths
// (nvidia/gpu/<model>-<position>), and a pod requests its share of one of them, or
// 1,000 for each of several GPUs: both are exact. gpu_spec is a constraint: model in [...].
//
// # google
//
// A node is a machine that exists at time 0; 1.0 CPU is 64 cores, 1.0 memory is 1
// TiB. The tasks that one job submitted in the same second with the same priority
// form one scenario job, j<job id>, or j<job id>-<second> and -p<priority> if the job
// has several. Its groups are the tasks with equal request, duration and constraints.
// It is a service if it is latency sensitive (scheduling class 2, 3) and none of its
// tasks ends in the window, else batch. Tasks that run or are pending at the end of
// the window have unlimited duration, and the scenario ends with the window.
// Evictions and failures in the real cluster are not imported; the duration is run_s
// of the last attempt, in whole seconds.
//
// Priorities 0–1 (free) are 20, 2–8 (middle) 50, 9–11 (production) 80, or the
// integer × 10 with RawPriority. Tasks from before the window are one burst at 0 s,
// highest priority first, then by job id. Requests that are zero or hidden in the
// trace become 1 millicore and 1 MiB. Disk is not imported because the machines have
// no disk capacity.
//
// Tasks of a job with different_machine have distinct_hosts. If the job became
// several groups or scenario jobs, they are separated by a label instead, which also
// applies between those. Constraints (available for production tasks of time 0)
// become constraints, and machines have the attributes that some constraint reads.
// Absent, empty and 0 are equal, as in the trace; see the type attributes.
//
// The derived files tasks.csv and machines.csv are read if they exist, else the raw
// event files, from which the same rows are computed. The raw files contain a few
// requests that the derived files hide.
//
// # swf
//
// A node is a machine of the .machines file, <cluster><number from 1>, or one of
// MaxNodes equal nodes if only the header of the log describes the cluster. A job is
// a gang (allAtOnce, if it has more than one task) with one group for each chunk of
// its node specification: nodes × (cores, memory per node). A log without the three
// extra columns has no specification. Its processors then use as few nodes as
// possible, and memory is KB per processor as in the standard (bytes per node with
// the extra columns). Queues determine the priority, see queueBands; Bands sets the
// priorities of other logs. Node properties that the nodes have are constraints: the
// cluster, a host, nodecpusN.
package importer
