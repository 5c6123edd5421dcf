// Package budget holds the cede budget commands and reads files of disruption
// budgets.
package budget
