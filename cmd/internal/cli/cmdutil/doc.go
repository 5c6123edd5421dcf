// Package cmdutil is the framework of all commands: the environment that a command
// runs in, errors and exit codes, output formats and pages, files, connections to
// servers, and the commands that named resources have in common.
//
// It holds no command of its own and imports none. An Env and everything created from
// it belong to one command line; they are not safe for concurrent use unless a
// method's comment allows it.
package cmdutil
