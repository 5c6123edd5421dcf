// Package compare holds cede compare, which plays the same scenarios under several
// policies, reports the differences, and answers what-if questions.
package compare
