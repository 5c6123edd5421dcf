// Package kube owns the meaning of Kubernetes objects: it reads dumps of a cluster
// (Read), translates nodes, pods, disruption budgets and priority classes into the
// model (Translate, Translator), and defines the protocol between kube-scheduler and a
// scheduler extender.
//
// It makes no decisions, runs no simulation and keeps no state. The importer writes a
// scenario from the result, and core/kube/extender uses it to answer kube-scheduler. If
// the model cannot express a scheduling requirement of an object, a Report counts and
// names it. Nothing is dropped silently.
//
// Dumps are untrusted input: they must not cause a panic or disproportionate memory use.
//
// All functions are safe for concurrent use. A Translator must be used by one goroutine.
package kube
