// Package decision owns the record of a decision to evict: it resolves the explanation
// that a plan carries (model.Choice) to names and priorities, and describes it in words.
//
// The record depends on the entry and the state alone, so that every server and the
// simulator derive the same one. The package decides nothing and stores nothing;
// core/server records and publishes what it returns.
//
// Its functions are safe for concurrent use.
package decision
