// Package examples contains small clusters with a workload and the expected result,
// each in a folder with a page that explains it. README.md lists them.
//
// It contains tests only, which play every scenario and check its expectations.
// cmd/internal/docstest runs the commands of the pages. It is never imported.
package examples
