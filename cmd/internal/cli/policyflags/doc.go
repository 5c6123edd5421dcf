// Package policyflags opens the policies that a command line names, with the settings
// and grants of its --config and --grant flags, and gives their errors exit codes.
package policyflags
