// Package dra translates dynamic resource allocation of Kubernetes in the model: the devices
// of ResourceSlices become device groups of nodes, and the requests of ResourceClaims
// become device requests.
//
// It allocates no devices and keeps no state. A device class or selector is the name of a
// Definition. Devices of a node that the same definitions select form a group, so that a
// request is exact for the definitions that were known when the inventory was built. What
// the model cannot express is returned as an error or as a finding.
//
// Objects are untrusted input: expressions are bounded in size and depth. An Inventory is
// immutable and safe for concurrent use.
package dra
