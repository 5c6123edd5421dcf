// Package policymgr manages the life of policy versions on one server: it opens and
// tests the versions that the state lists, activates those that the state names, and
// records the decisions of policies.
//
// The versions and their roles are in the state. Compiling a module takes half a second,
// and the goroutine that applies the log must not wait for it. So one goroutine
// (Manager.Run) opens every version long before it is activated, and reports the result
// through the log. A version is activated only after every voting server has checked it,
// so that the activation itself is one pointer: Pin compares the newest state with the
// active set and replaces the set if they differ. No evaluation is planned with a set
// older than its snapshot, evaluations in progress finish with the set that they pinned,
// and neither a restart nor a snapshot from another server needs code of its own.
//
// A server that has not opened an active version must not decide with another one: its
// workers wait, and it reports that it is not ready.
//
// Manager and Policies are safe for concurrent use.
package policymgr
