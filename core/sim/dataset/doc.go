// Package dataset writes the data of simulated runs as tables, in CSV and in Parquet.
//
// The row types in tables.go are the schema: the tag names the column, in CSV and in
// Parquet alike, and the comment describes it in docs/reference/datasets.md. A Recorder
// receives one run and writes its rows to a Part. WriteCSV and WriteParquet then join the
// parts of several runs, in the order of the caller, so that runs may be played
// concurrently and the files do not depend on their order. No table is held in memory.
//
// A Recorder and its Part must be used by one goroutine.
package dataset
