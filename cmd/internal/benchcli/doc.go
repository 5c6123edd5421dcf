// Package benchcli owns the command tree of cede-bench: its grammar, its flags and
// its output. Package bench performs the measurements. Only cmd/cede-bench and tests
// import it. It keeps no global state; one call of Main runs one command line.
package benchcli
