// Package benchcli owns the command tree of cede-bench: its grammar, its flags and
// what it prints. Package bench does the measuring. Only cmd/cede-bench and tests
// import it. It keeps no global state; one call of Main serves one command line.
package benchcli
