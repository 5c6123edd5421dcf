// Package cli owns the command tree of cede: the root command, help topics, version
// and completion. The commands themselves are in its subpackages, one for each noun
// (job, node, policy, …). Shared code is in cmdutil, the rendering of API objects in
// apiview, and the code of commands that simulate in policyflags and simrun.
//
// It holds no scheduling logic: core/sim simulates, sdk/client calls servers, and the
// results are printed here. It has no global state. Commands are created from a
// cmdutil.Env; tests create one in memory with clitest. cmd/cede calls Main, and one
// call runs one command line.
package cli
