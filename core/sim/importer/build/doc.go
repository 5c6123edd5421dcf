// Package build holds the parts that all importers share: the files of a trace and their
// rows (Source, Table, Lines), the options and the report of an import, and the builder
// that applies the options and completes the scenario. It contains no knowledge of any
// format, and reads files row by row, so that the memory of an import depends on its jobs
// and not on its files.
//
// Nothing is dropped or changed silently: an invalid value is an error with the file and
// the line, all errors of a file are returned together, and every deviation is counted in
// the Report. The functions are safe for concurrent use; a Builder, a Table and Lines belong
// to one goroutine.
package build
