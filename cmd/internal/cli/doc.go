// Package cli owns the commands: their grammar, their flags, what they print
// and the code they exit with. It decides nothing: core/sim plays, compares and
// imports, and what it says is shown here.
//
// Nothing in it is global. A command is made from an Env, which is all it knows
// of the world; tests make another. cmd/cede calls Main, and one call of it
// serves one command line.
package cli
