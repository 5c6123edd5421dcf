// Package report owns the page that `cede compare --html` writes: one file
// that needs no network and no script, with the summary, the figures and the
// decisions that differ. Figures are SVG made here; every one has a title, a
// description and its numbers as a table, and tells policies apart by dash and
// marker as well as by colour.
//
// It never compares or measures: it draws a compare.Document. Equal documents
// give equal bytes.
//
// cmd calls it. Nothing here keeps state.
package report
