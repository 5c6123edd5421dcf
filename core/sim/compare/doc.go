// Package compare owns what `cede compare` says of several runs: the document
// (version 1) with a summary per metric and the first decisions that differ,
// the table for people, and the expressions of --fail-if.
//
// It never plays a scenario and knows no policy: it is given finished runs. A
// run is paired with those of the same scenario and seed under other policies,
// and the first policy is the one that the others are measured against. Equal
// runs give equal bytes.
//
// cmd calls it, and core/sim/report draws its Document. A Document is
// read-only once it is made; nothing here locks.
package compare
