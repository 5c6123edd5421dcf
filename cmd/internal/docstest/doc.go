// Package docstest tests the documents: it runs every command that a page shows
// and compares the output, checks the command lines that are too intrusive to run
// against the help of the command, and generates the pages of docs/reference from
// the code that they describe.
//
// It contains tests only. The pages are README.md, docs/**/*.md and
// examples/*/README.md.
//
// Conventions for fenced blocks:
//
//	console   "$ command", then its standard output. The output is compared. An
//	          output that ends with … is cut after as many paragraphs as are shown.
//	sh        commands that must succeed; their output is not compared. A block that
//	          starts with "bin/cede agent" runs until the end of the page.
//	yaml, hcl, go, json
//	          saved as NAME if the first line is the comment "# NAME" or "// NAME",
//	          or, for a scenario, if it starts with "version: 1" and "name: NAME".
//	text      not executed. Lines that start with "cede" or "bin/cede" are checked
//	          against the help: the command and its flags must exist.
//
// Each page runs in an empty folder with bin/cede, bin/cede-bench, and links to
// examples and policies, which a page must not change.
// Ports of 127.0.0.1 between 14600 and 14699 are replaced by free ones. A command
// that contains $CEDE_TRACES is skipped if there are no traces, and a page that creates
// certificates if openssl is not installed. The commands
// kubectl and nomad are replaced by scripts that print the dumps in testdata.
//
// After an intended change, `go test ./cmd/internal/docstest -update` rewrites the
// outputs in the pages, and `go generate ./cmd/internal/docstest` the reference.
package docstest

//go:generate go test -count=1 -run TestReference|TestDashboard_Matches|TestPythonClient_Matches -update .
