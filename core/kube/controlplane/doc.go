// Package controlplane runs a stock Kubernetes control plane on loopback: etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler, built from their Go
// modules. Nodes are objects, and Kubelets reports their pods as running or terminated.
// The tests of the package are stories that are played on it with cede as scheduler
// extender and as scheduler plugin.
//
// It is a module of its own: cede does not depend on k8s.io/kubernetes, and go.mod here
// pins the versions that the stories were played with. `make test-kubernetes` builds the
// programs once for each version and plays all stories.
//
// A Cluster is safe for concurrent use. Its processes end with the test.
package controlplane
