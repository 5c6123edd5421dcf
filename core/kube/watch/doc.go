// Package watch follows a Kubernetes cluster through the API server: nodes, pods, pod
// disruption budgets, priority classes and namespaces. It owns the informers, and
// passes objects to a Sink, which is the cache of the scheduler extender. A Reader reads
// them once, for kubectl cede. It evaluates nothing and writes nothing to the cluster.
//
// It is the only package that depends on client-go, which adds megabytes to a binary:
// cmd/internal/cli/kubernetes and cmd/internal/cli/kubectl alone import it. Lists, watches, expired versions (status
// 410) and lost connections are handled by the reflectors of client-go.
//
// A Watcher is safe for concurrent use.
package watch
