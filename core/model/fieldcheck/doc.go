// Package fieldcheck owns the checks of single fields that job files and scenarios
// share: the bounds, the texts of the problems, and their remedies. The two formats
// have different syntax and different names for some fields, but the same fields must
// be accepted and refused alike.
//
// It checks values and does not read documents: core/jobspec and core/sim/scenario
// decide which field is checked, and add its position. Checks that need more than one
// object stay there. All functions are pure and safe for concurrent use.
package fieldcheck
