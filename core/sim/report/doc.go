// Package report writes the page of `cede compare --html`: one self-contained file
// without scripts, with the summary, the figures and the differing decisions. Figures
// are SVG generated here. Each one has a title, a description and its numbers as a
// table, and distinguishes policies by dash and marker as well as by colour.
//
// The package does not compare or measure: it draws a compare.Document. Equal
// documents return equal bytes.
//
// cmd calls it. The package holds no state.
package report
