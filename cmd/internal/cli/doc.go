// Package cli owns the command tree of cede: the root command, help topics, version
// and completion. The commands themselves are in its subpackages, one for each noun
// (job, node, policy, …); what they share is in cmdutil, what those that show the
// same API objects share in apiview, and what those that simulate share in
// policyflags and simrun.
//
// It decides nothing: core/sim simulates, sdk/client calls servers, and the results
// are printed here. Nothing in it is global. Commands are made from a cmdutil.Env;
// tests make one in memory with clitest. cmd/cede calls Main, and one call serves one
// command line.
package cli
