// Package kube owns what Kubernetes objects mean here: it reads dumps of a
// cluster (Read), turns nodes, pods, disruption budgets and priority classes
// into the model's nouns (Translate, Translator), and defines what
// kube-scheduler and an extender say to each other.
//
// It never decides anything, plays nothing and keeps no state: the importer
// makes a scenario of what it returns, and core/kube/extender answers
// kube-scheduler with it. What an object says about scheduling and our nouns
// cannot express is counted and named in Notes; nothing is dropped in silence.
//
// Dumps come from strangers: nothing in them may cause a panic or take memory
// out of proportion.
//
// All functions may be called concurrently; a Translator serves one goroutine.
package kube
