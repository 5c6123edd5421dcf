// Package kuberec imports recordings of Kubernetes clusters: those of `kwokctl snapshot
// record` (KWOK) and the traces of SimKube (SimKube). Both are sequences of objects that
// were applied, changed and deleted. It owns their formats and the lives of pods that follow
// from them; core/kube translates the objects. It never runs a scenario, and package importer
// lists its functions.
//
// A pod is a job of one instance. It is submitted when it appears. A pod that finished has
// the duration from its binding to its end; one that was deleted is stopped at that time.
// If a recording has no pods, as those of SimKube, each Deployment, StatefulSet, ReplicaSet,
// DaemonSet and Job is a job.
//
// Events are read one by one, and the cost is linear in their number. All functions are safe
// for concurrent use. docs/guides/import-traces.md lists the facts that are lost.
package kuberec
