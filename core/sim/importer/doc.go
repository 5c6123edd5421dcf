// Package importer turns cluster traces into scenarios: OpenB (Alibaba's GPU
// cluster of 2023), Google (the cluster trace of 2011) and SWF (logs in the
// Standard Workload Format, with MetaCentrum's extra columns); and Kube and Nomad,
// dumps of clusters of those names. It owns what a
// trace's rows mean, and the options that choose a part of one: Keep and Nodes
// (fewer nodes), Compress (more work per time), Sample (a scale model), From,
// Until and Limit.
//
// It never runs anything, never invents work, and never drops any in silence:
// what a scenario cannot say, or what is odd, is counted in the Report. Rows
// that make no sense end an import with the file and the line. The same files
// and options give the same scenario, byte for byte. `cede sim import` calls
// it; all functions may be called concurrently.
//
// # What is common
//
// Keep and Nodes take nodes in NodeOrder. Compress divides submit times, from
// the beginning of the window, and leaves durations as they are. A job's id is
// that of the trace; an instance that ran for no time runs for one unit of the
// trace's clock, because a duration of 0 means for ever. Jobs and events are
// in order of submission.
//
// # kube
//
// A dump of a Kubernetes cluster: no trace, but one moment of what runs and what
// waits. It is imported whole; of the options it takes the name and Strict alone. An
// object that cannot be read is named in the report and left out, unless Strict. What objects
// mean is core/kube's to say (its DESIGN.md): this package writes it down.
// What runs is there at the start, pods on their way out are stopped at 0s, and jobs
// with pods that wait are submitted then, those with a node in prospect first, then
// in order of creation. Nothing ends by itself. KubeWork adds the work of manifests.
//
// # nomad
//
// A dump of a Nomad cluster: answers of its API, as `nomad operator api` writes
// them, in any number of .json files, told apart by what they hold. Lists of nodes
// and allocations with resources are enough; specifications of jobs (/v1/job/ID)
// add counts and constraints, nodes one by one (/v1/node/ID) the attributes that
// constraints read, and the scheduler's configuration what may be preempted. Units
// are kept: cpu is Nomad's MHz. What runs is there at the start, and jobs of which
// less runs than is asked for are submitted then. A job without a specification is
// made of what its allocations hold.
//
// # openb
//
// A pod is a batch job of one instance, submitted at creation_time, that runs
// for deletion_time − scheduled_time. LS and Guaranteed have priority 80,
// Burstable 50, BE 20. Pods that were never scheduled are left out, having no
// duration; with NeverRanKeep they are submitted and stopped at deletion_time.
//
// A GPU is 1,000 units of the resource gpu-milli: a node has 1,000 per GPU, a
// pod asks for gpu_milli, or for 1,000 per GPU when it wants several. That is
// the view by totals. It lets a share straddle two GPUs, which the real
// cluster does not, so it places slightly more; it keeps the pressure of the
// trace, in which two pods of five share a GPU. WholeGPUs makes GPUs devices
// (nvidia/gpu/<model>), and every share a whole one: honest about places, and
// asking for about a third more. gpu_spec is a constraint: model in [...].
//
// # google
//
// A node is a machine of time 0; 1.0 CPU is 64 cores, 1.0 memory is 1 TiB.
// Tasks that one job submitted in one second at one priority are one scenario
// job, j<job id>, or where the job has several, j<job id>-<second> and
// -p<priority>. Its groups are the tasks that are equal in request, duration
// and constraints. It is a service when it is latency sensitive (scheduling
// class 2, 3) and none of its tasks ends in the window, else batch. Tasks that
// run or wait at the end of the window have no duration: they run for ever,
// and the scenario ends with the window. Evictions and failures that the real
// cluster went through are not told; run_s of the last attempt is the duration, in whole
// seconds.
//
// Priorities 0–1 (free) are 20, 2–8 (middle) 50, 9–11 (production) 80, or with
// RawPriority the integer × 10. What was there before the window is one burst
// at 0 s, highest priority first, then by job id. Requests of zero, and those
// that the trace hides, ask for 1 millicore and 1 MiB. Disk is not told: the
// machines have no disk.
//
// Tasks of a job with different_machine have distinct_hosts; where the job
// became several groups or scenario jobs, they are kept apart by a label
// instead, which also holds between those. Constraints (known for production
// tasks of time 0) are constraints, and machines have the attributes that some
// constraint reads; absent, empty and 0 are equal there as in the trace, see
// the type attributes.
//
// The derived files tasks.csv and machines.csv are read where they are, else
// the raw event files, from which the same rows are made. The raw files tell a
// few requests that the derived ones hide.
//
// # swf
//
// A node is a machine of the .machines file, <cluster><number from 1>, or one
// of MaxNodes equal nodes when only the log's header tells. A job is a gang
// (allAtOnce, when it has more than one task), a group for each chunk of its
// node specification: nodes × (cores, memory per node). A log without the
// three extra columns has no specification; its processors then lie on as few
// nodes as hold them, and memory is KB per processor as the standard says
// (with the extra columns it is bytes per node). Queues give the priority: see
// queueBands; other logs name theirs with Bands. Properties that the nodes
// have are constraints: the cluster, a host, nodecpusN.
package importer
